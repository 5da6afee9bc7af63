"""How large a query can make a text or an array: what it asks for must be written, and small.

``repeat('x', 2000000000)`` asks for 2 GB at once, which takes the whole Spark process with it and
everybody's channels. So a count must be a written number, and the size of every expression is estimated
from its parts: arguments that multiply are multiplied, others added. A name that an inner query gave to an
expression stands for its size. A value of the data counts as ``VALUE`` characters, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

from sqlglot import exp

from tocsin.compiler.parse import Source

MAX_COUNT = 10_000
MAX_SIZE = 1_000_000
VALUE = 10

# The argument that says how large the result becomes: a clause of the tree, or a place in a list.
# Rounding belongs to them, because Java writes down every decimal that it is asked for.
_CLAUSES: dict[type[exp.Expr], str] = {
    exp.Repeat: "times",
    exp.Space: "this",
    exp.Pad: "expression",
    exp.Round: "decimals",
    exp.Ceil: "decimals",
    exp.Floor: "decimals",
}
_PLACES = {"array_repeat": 1, "format_number": 1, "bround": 1}
_NAMING = ("with_", "from_", "joins", "laterals")  # clauses whose names the others use
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not)

SizeOf = Callable[[exp.Expr | None], int]


def check_sizes(source: Source, tree: exp.Query) -> None:
    """InvalidQuery where an expression may make more of its arguments than is good for all."""
    sizes: dict[int, int] = {}
    named: dict[str, int] = {}
    for node in _inside_out(tree):
        _check_counts(source, node)
        size = sizes[id(node)] = _size(node, lambda part: sizes[id(part)] if part is not None else 1, named)
        if size > MAX_SIZE and isinstance(node, exp.Condition):
            raise source.invalid(f"{_name(node)} may make too much here", node, f"at most {MAX_SIZE:,} characters")
        for name, part in _names_given(node):
            named[name.lower()] = max(sizes[id(part)], named.get(name.lower(), 0))


def _inside_out(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Parts before the whole, and in a query what gives names before what uses them; as deep as trees may be."""
    waiting = [(tree, False)]
    while waiting:
        node, are_parts_done = waiting.pop()
        if are_parts_done:
            yield node
            continue
        waiting.append((node, True))
        parts = sorted(node.iter_expressions(), key=lambda part: part.arg_key not in _NAMING)
        waiting += [(part, False) for part in reversed(parts)]


def _names_given(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """What can be called by which name from here on."""
    if isinstance(node, exp.Alias):
        yield node.alias, node.this
    elif isinstance(node, exp.SetOperation):
        yield from _by_place(node.named_selects, _arms(node))
    elif isinstance(alias := node.args.get("alias"), exp.TableAlias):
        names = [column.name for column in alias.columns]
        if isinstance(node.this, exp.Query):
            yield from _by_place(names, _arms(node.this))
        else:
            yield from ((name, node.this) for name in names)


def _arms(query: exp.Expr) -> list[exp.Select]:
    """The SELECTs that a query is made of, without those inside them."""
    if isinstance(query, exp.SetOperation):
        return _arms(query.this) + _arms(query.expression)
    return [query] if isinstance(query, exp.Select) else _arms(query.this)


def _by_place(names: Iterable[str], arms: Iterable[exp.Select]) -> Iterator[tuple[str, exp.Expr]]:
    for arm in arms:
        yield from ((name, part) for name, part in zip_longest(names, arm.expressions) if name and part is not None)


def _size(node: exp.Expr, of: SizeOf, named: dict[str, int]) -> int:
    """About how many characters the value of a node has, by the sizes of its parts."""
    if isinstance(node, exp.Column):
        return max(VALUE, *(named.get(part.name.lower(), 0) for part in node.parts))
    if isinstance(node, exp.Literal | exp.Placeholder):
        return max(1, len(node.name)) if isinstance(node, exp.Literal) else VALUE
    if isinstance(node, _TRUTHS):
        return 1
    parts = [of(part) for part in node.iter_expressions()]
    if (growth := _GROWTH.get(_name(node))) is not None:
        return growth(node, of)
    return max(1, sum(parts)) if isinstance(node, exp.Condition) else max(1, *parts, 1)


def _multiplied(node: exp.Expr, of: SizeOf) -> int:
    text = node.this if isinstance(node, exp.Repeat) else node.expressions[0]
    return of(text) * _counted(node, of)


def _counted(node: exp.Expr, _: SizeOf) -> int:
    return abs(_integer(_count_of(node)) or 0)


def _series(node: exp.Expr, _: SizeOf) -> int:
    return _length(node) or 1


def _replaced(node: exp.Expr, of: SizeOf) -> int:
    """Each place found becomes the replacement."""
    search = node.args["expression"]
    found = len(search.name) if isinstance(search, exp.Literal) else 1
    return of(node.this) * max(1, of(node.args.get("replacement")) // max(1, found))


def _matches_replaced(node: exp.Expr, of: SizeOf) -> int:
    """A pattern finds places without width, and what it saw around them can be named in the replacement."""
    pattern, text = node.args["expression"].name, of(node.this)
    seen = text if "(?=" in pattern or "(?<=" in pattern else 1
    return text * seen * of(node.args.get("replacement"))


def _all_matches(node: exp.Expr, of: SizeOf) -> int:
    """A group that looks ahead can hold the rest of the text at each place."""
    return of(node.this) * of(node.this)


def _joined(node: exp.Expr, of: SizeOf) -> int:
    """The separator stands between all parts, and an array has many."""
    separator, *others = node.expressions if isinstance(node, exp.ConcatWs) else (node.args["expression"], node.this)
    return max(1, of(separator)) * max(1, sum(map(of, others)))


def _doubled(node: exp.Expr, of: SizeOf) -> int:
    return 2 * of(node.this)


def _compared(node: exp.Expr, of: SizeOf) -> int:
    """A number comes out, but each letter of one text is compared with each of the other."""
    return of(node.this) * of(node.args["expression"])


_GROWTH: dict[str, Callable[[exp.Expr, SizeOf], int]] = {
    "repeat": _multiplied,
    "array_repeat": _multiplied,
    "space": _counted,
    "pad": _counted,
    "format_number": _counted,
    "generate_series": _series,
    "replace": _replaced,
    "regexp_replace": _matches_replaced,
    "regexp_extract_all": _all_matches,
    "concat_ws": _joined,
    "array_to_string": _joined,
    "hex": _doubled,
    "levenshtein": _compared,
}


def _count_of(node: exp.Expr) -> exp.Expr | None:
    """The argument that counts, if ``node`` calls one of these functions."""
    if type(node) in _CLAUSES:
        found: exp.Expr | None = node.args.get(_CLAUSES[type(node)])
        return found
    place = _PLACES.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None
    return node.expressions[place] if place is not None and len(node.expressions) > place else None


def _check_counts(source: Source, node: exp.Expr) -> None:
    if isinstance(node, exp.GenerateSeries) and (_length(node) or MAX_COUNT + 1) > MAX_COUNT:
        raise source.invalid("this sequence may be long", node, f"written integers that make at most {MAX_COUNT:,}")
    count = _count_of(node)
    if count is not None and ((written := _integer(count)) is None or abs(written) > MAX_COUNT):
        raise source.invalid(f"{_name(node)} was given {count.sql()!r:.60}", node, f"a number up to {MAX_COUNT:,}")


def _length(series: exp.Expr) -> int | None:
    """How many a written sequence has."""
    start, end = (_integer(series.args.get(name)) for name in ("start", "end"))
    step = _integer(series.args.get("step")) if series.args.get("step") else 1
    return None if start is None or end is None or not step else abs(end - start) // abs(step) + 1


def _integer(node: exp.Expr | None) -> int | None:
    if isinstance(node, exp.Paren):
        return _integer(node.this)
    if isinstance(node, exp.Neg):
        inner = _integer(node.this)
        return None if inner is None else -inner
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if node is not None and is_number else None


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return str(node.sql_name()).lower() if isinstance(node, exp.Func) else node.key
