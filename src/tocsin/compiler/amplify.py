"""Functions whose result is as large as a number in the query says: the number must be written, and small.

``repeat('x', 2000000000)`` asks for 2 GB at once, which takes the whole Spark process with it and
everybody's channels. Nested calls multiply, so their product is bounded too.
"""

from __future__ import annotations

from math import prod

from sqlglot import exp

from tocsin.compiler.parse import Source

MAX_COUNT = 10_000
MAX_NESTED = 1_000_000

# The argument that says how large the result becomes: a clause of the tree, or a place in a list.
_CLAUSES: dict[type[exp.Expr], str] = {exp.Repeat: "times", exp.Space: "this", exp.Pad: "expression"}
_PLACES = {"array_repeat": 1, "format_number": 1}


def check_amplifier(source: Source, node: exp.Expr) -> None:
    """InvalidQuery where a function may make more of its arguments than is good for all."""
    if isinstance(node, exp.GenerateSeries):
        _check_series(source, node)
    elif (size := _count_of(node)) is not None:
        _check_count(source, node, size)
        _check_nested(source, node)


def _count_of(node: exp.Expr | None) -> exp.Expr | None:
    """The argument that counts, if ``node`` calls one of these functions."""
    if type(node) in _CLAUSES:
        found: exp.Expr | None = node.args.get(_CLAUSES[type(node)])  # type: ignore[union-attr, index]
        return found
    place = _PLACES.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None
    return node.expressions[place] if node and place is not None and len(node.expressions) > place else None


def _check_count(source: Source, node: exp.Expr, size: exp.Expr) -> None:
    written = _integer(size)
    if written is None or abs(written) > MAX_COUNT:
        raise source.invalid(f"{_name(node)} was given {size.sql()!r:.60}", node, f"a number up to {MAX_COUNT:,}")


def _check_nested(source: Source, node: exp.Expr) -> None:
    counts = []
    at: exp.Expr | None = node
    while at is not None:
        counts.append(_integer(_count_of(at)) or 1)
        at = at.parent
    if prod(map(abs, counts)) > MAX_NESTED:
        raise source.invalid(f"nested calls of {_name(node)} make too much", node, f"at most {MAX_NESTED:,} in all")


def _check_series(source: Source, node: exp.GenerateSeries) -> None:
    ends = [_integer(node.args.get(name)) for name in ("start", "end")]
    step = _integer(node.args.get("step")) if node.args.get("step") else 1
    if ends[0] is None or ends[1] is None or not step or abs(ends[1] - ends[0]) // abs(step) >= MAX_COUNT:
        raise source.invalid("this sequence may be long", node, f"written integers that make at most {MAX_COUNT:,}")


def _integer(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Paren):
        return _integer(node.this)
    if isinstance(node, exp.Neg):
        inner = _integer(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if node is not None and is_number else None


def _name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else str(node.sql_name()).lower()  # type: ignore[attr-defined]
