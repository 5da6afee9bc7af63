"""Order, limits and ranks: ORDER BY … LIMIT for every subscription at once.

``ORDER BY k LIMIT n`` for one subscription is, for all of them, "the row's number among those of its
subscription, ordered by k, is at most n". Ties are broken by all the outputs, so that the same rows
give the same result on every run. ``__ord`` ranks the rows of one (subscription, sequence).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.parse import Source
from tocsin.compiler.plan import ORDINAL, SEQUENCE
from tocsin.compiler.trees import derived

_KEY, _LIMIT, _ROW = "__by", "__limit", "__row"


@dataclass(frozen=True, slots=True)
class Ranking:
    """ORDER BY and LIMIT taken off a query; the keys are columns of its outputs."""

    order: tuple[exp.Ordered, ...]
    limit: exp.Expr | None  # a number, or a column that holds one
    offset: int


def detach(source: Source, query: exp.Query, *, keep_order: bool) -> Ranking:
    """Take ORDER BY, LIMIT and OFFSET off; keys that are no outputs become outputs ``__by0``, …

    ``keep_order`` asks for the keys even without a LIMIT.
    """
    order, limit, offset = (query.args.get(k) for k in ("order", "limit", "offset"))
    for key in ("order", "limit", "offset"):
        query.set(key, None)
    count = _limit(source, query, limit) if limit is not None else None
    skipped = _number(source, offset.expression, "OFFSET") if offset is not None else 0
    if order is None or (count is None and not skipped and not keep_order):
        return Ranking((), count, skipped)
    keys = tuple(_key(source, query, i, key) for i, key in enumerate(order.expressions))
    return Ranking(keys, count, skipped)


def _number(source: Source, node: exp.Expr, what: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    raise source.invalid(f"{what} was given an expression", node, "a whole number")


def _limit(source: Source, query: exp.Query, limit: exp.Expr) -> exp.Expr:
    """A number, or ``LIMIT :k`` as a column, for every subscription may have its own."""
    count = limit.expression
    if isinstance(count, exp.Placeholder) and isinstance(query, exp.Select) and not query.args.get("distinct"):
        query.append("expressions", exp.alias_(count.copy(), _LIMIT))
        return exp.column(_LIMIT)
    return exp.Literal.number(_number(source, count, "LIMIT"))


def _key(source: Source, query: exp.Query, number: int, key: exp.Ordered) -> exp.Ordered:
    outputs = {p.alias_or_name: p.unalias() for p in query.selects}
    ordered = key.copy()
    value = ordered.this
    if isinstance(value, exp.Column) and not value.table and value.name in outputs:
        return ordered
    for name, definition in outputs.items():
        if definition == value:
            ordered.set("this", exp.column(name))
            return ordered
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        raise source.invalid("ORDER BY names something that is not selected", key, "an output column")
    query.append("expressions", exp.alias_(_without_aliases(value, outputs), f"{_KEY}{number}"))
    ordered.set("this", exp.column(f"{_KEY}{number}"))
    return ordered


def _without_aliases(value: exp.Expr, outputs: dict[str, exp.Expr]) -> exp.Expr:
    """An expression over outputs, said over what they are made of."""
    return value.transform(
        lambda n: (
            exp.paren(outputs[n.name].copy()) if isinstance(n, exp.Column) and not n.table and n.name in outputs else n
        )
    )


def _row_number(partition: Sequence[str], ranking: Ranking, outputs: Sequence[str]) -> exp.Window:
    named = {key.this.name.lower() for key in ranking.order}
    keys = [key.copy() for key in ranking.order]
    keys += [exp.Ordered(this=exp.column(o), nulls_first=True) for o in outputs if o.lower() not in named]
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[exp.column(p) for p in partition],
        order=exp.Order(expressions=keys) if keys else None,
    )


def limited(query: exp.Query, ranking: Ranking, partition: Sequence[str], outputs: Sequence[str]) -> exp.Query:
    """The rows of ``query`` within LIMIT and OFFSET of their partition, as the given outputs."""
    if ranking.limit is None and not ranking.offset:
        return query
    numbered = exp.select("*", exp.alias_(_row_number(partition, ranking, outputs), _ROW)).from_(derived(query, "__q"))
    kept = exp.select(*(exp.column(o) for o in (*partition, *outputs))).from_(derived(numbered, "__r"))
    return kept.where(*_bounds(ranking))


def _bounds(ranking: Ranking) -> list[exp.Expr]:
    row = exp.column(_ROW)
    bounds: list[exp.Expr] = []
    if ranking.offset:
        bounds.append(exp.GT(this=row.copy(), expression=exp.Literal.number(ranking.offset)))
    if ranking.limit is not None:
        last = ranking.limit.copy()
        if ranking.offset:
            last = exp.Add(this=last, expression=exp.Literal.number(ranking.offset))
        bounds.append(exp.LTE(this=row.copy(), expression=last))
    return bounds


def finished(
    query: exp.Query,
    ranking: Ranking,
    partition: Sequence[str],
    outputs: Sequence[str],
    names: Sequence[str],
    *,
    is_ranked: bool,
) -> exp.Select:
    """``partition``, ``__seq``, ``__ord`` and the outputs under their final names.

    ``query`` gives the partition's columns, ``__seq`` and ``outputs``. A window is spent only where
    several rows can have the same partition and sequence.
    """
    _rename(query, dict(zip(outputs, names, strict=True)))
    head = (*partition, SEQUENCE)
    if ranking.limit is not None or ranking.offset:
        numbered = exp.select("*", exp.alias_(_row_number(partition, ranking, names), _ROW)).from_(
            derived(query, "__q")
        )
        rows, row, bounds = derived(numbered, "__r"), exp.column(_ROW), _bounds(ranking)
        return _headed(head, row, names).from_(rows).where(*bounds)
    if not is_ranked and isinstance(query, exp.Select):
        return _unranked(query, head, names)
    return _headed(head, _row_number(head, ranking, names), names).from_(derived(query, "__q"))


def _headed(head: Sequence[str], row: exp.Expr, names: Sequence[str]) -> exp.Select:
    ordinal = exp.alias_(exp.Sub(this=row, expression=exp.Literal.number(1)), ORDINAL)
    return exp.select(*(exp.column(h) for h in head), ordinal, *(exp.column(n, quoted=True) for n in names))


def _rename(query: exp.Expr, names: Mapping[str, str]) -> None:
    """Give the outputs their final names here, at the source of each row.

    Renamed above a UNION they would be columns twice, once to order by and once to give out, and Spark's
    optimizer, which pushes both below the UNION and drops the alias, then rejects its own plan.
    """
    if isinstance(query, exp.SetOperation):
        for arm in (query.this, query.expression):
            _rename(arm, names)
        return
    for projection in query.selects if isinstance(query, exp.Query) else ():
        if (name := names.get(projection.alias_or_name)) is not None:
            projection.replace(exp.alias_(projection.unalias().copy(), name, quoted=True))


def _unranked(query: exp.Select, head: Sequence[str], names: Sequence[str]) -> exp.Select:
    """The query itself with ``__ord`` 0, its order keys dropped."""
    given = {p.alias_or_name: p for p in query.expressions}
    ordinal = exp.alias_(exp.Literal.number(0), ORDINAL)
    query.set("expressions", [*(given[h] for h in head), ordinal, *(given[n] for n in names)])
    return query
