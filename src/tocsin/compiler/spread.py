# ruff: noqa: S608 - the texts built here are parsed into trees; nothing of a user is in them unprinted
"""Sources of FROM wrapped in place: with cells beside their rows, or with subscriptions merged in.

Every wrapper keeps the source's alias and columns, so the rest of the query does not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sqlglot import exp

from tocsin.compiler.cells import Point, cover_sql, level_sql, number_sql, probe_sql
from tocsin.compiler.drivers import VIEW
from tocsin.compiler.functions import print_sql
from tocsin.compiler.plan import SUBSCRIPTION
from tocsin.compiler.trees import derived, joins_of, parsed, set_where, source_named, tables_of, where_conjuncts

_HOLE = "__hole"


def wrap(select: exp.Select, alias: str, template: str) -> exp.Subquery:
    """Replace the source ``alias`` by the template, in which it stands where the hole is."""
    node = source_named(select, alias)
    assert node is not None
    query = parsed(template)
    wrapper = derived(query, alias)
    wrapper.meta[VIEW] = node.meta.get(VIEW)
    node.replace(wrapper)
    hole = next(t for t in query.find_all(exp.Table) if t.name == _HOLE)
    hole.replace(node)
    return wrapper


def spread_at(select: exp.Select, alias: str, point: Point, radius: float, size: float, prefix: str) -> list[str]:
    """One row for each cell of one size that the circle covers; the names of the cell columns."""
    covers = cover_sql(point, number_sql(radius), number_sql(size))
    names = [f"{prefix}x{i}" for i in range(len(covers))]
    wrap(select, alias, f"SELECT `{alias}`.*, {', '.join(names)} FROM {_HOLE} {_exploded(covers, names)}")
    return names


def spread(
    select: exp.Select,
    alias: str,
    point: Point,
    radius: exp.Expr,
    cell: float,
    max_radius: float,
    prefix: str,
    levels: int,
) -> list[str]:
    """The same where every row has its own radius; the first name is that of the level.

    A negative radius reaches nothing and covers as little as 0 does, however far below it is.
    """
    level, reach = f"{prefix}l", f"{prefix}r"
    capped = f"GREATEST(LEAST(CAST({print_sql(radius)} AS DOUBLE), {number_sql(max_radius)}), {number_sql(0)})"
    sized = f"SELECT `{alias}`.*, {level_sql(capped, cell, levels)} AS {level}, {capped} AS {reach} FROM {_HOLE}"
    covers = cover_sql(point, f"`{alias}`.{reach}", f"({number_sql(cell)} * POW(2, `{alias}`.{level}))")
    names = [f"{prefix}x{i}" for i in range(len(covers))]
    columns = ", ".join(names)
    wrap(select, alias, f"SELECT `{alias}`.*, {columns} FROM ({sized}) AS `{alias}` {_exploded(covers, names)}")
    return [level, *names]


def probe(select: exp.Select, alias: str, point: Point, cell: float, levels: int, prefix: str) -> list[str]:
    """One row for each level with the point's cell there; the names of level and cell columns."""
    names = [f"{prefix}m", *(f"{prefix}y{i}" for i in range(len(point.axes_sql())))]
    columns = ", ".join(names)
    wrap(
        select,
        alias,
        f"SELECT `{alias}`.*, {columns} FROM {_HOLE} "
        f"LATERAL VIEW INLINE({probe_sql(point, cell, levels)}) {prefix}p AS {columns}",
    )
    return names


def _exploded(covers: Sequence[str], names: Sequence[str]) -> str:
    return " ".join(f"LATERAL VIEW EXPLODE({c}) v{n} AS {n}" for c, n in zip(covers, names, strict=True))


def merged_name(column: str) -> str:
    """What a column of the subscriptions' relation is called inside another source."""
    return column if column == SUBSCRIPTION else f"__{column}"


def renamed(node: exp.Expr, subs: str, alias: str) -> exp.Expr:
    """A copy that reads from ``alias`` what was read from ``subs`` before it was merged into it."""
    return node.transform(
        lambda n: exp.column(merged_name(n.name), table=alias) if isinstance(n, exp.Column) and n.table == subs else n
    )


def rename_all(select: exp.Select, subs: str, alias: str) -> None:
    for found in list(select.find_all(exp.Column)):
        if found.table == subs:
            found.replace(exp.column(merged_name(found.name), table=alias))


def remove_source(select: exp.Select, alias: str) -> exp.Expr:
    """Take a source out of FROM; what is joined next takes its place where it was the first."""
    joins = joins_of(select)
    first = select.args["from_"].this
    if first.alias_or_name == alias:
        select.set("from_", exp.From(this=joins.pop(0).this))
        select.set("joins", joins)
        return cast(exp.Expr, first)
    gone = next(join for join in joins if join.this.alias_or_name == alias)
    select.set("joins", [join for join in joins if join is not gone])
    return cast(exp.Expr, gone.this)


def merge_subscriptions(select: exp.Select, alias: str, subs: str, columns: Sequence[str]) -> None:
    """Join the subscriptions to the source ``alias`` below it, by the conditions that touch only the two."""
    node = remove_source(select, subs)
    both = [c for c in where_conjuncts(select) if subs in tables_of(c) <= {alias, subs} and c.find(exp.Query) is None]
    chosen = {id(c) for c in both}
    set_where(select, [c for c in where_conjuncts(select) if id(c) not in chosen])
    given = ", ".join(f"`{subs}`.`{c}` AS `{merged_name(c)}`" for c in (SUBSCRIPTION, *columns))
    wrapper = wrap(select, alias, f"SELECT `{alias}`.*, {given} FROM {_HOLE} CROSS JOIN {print_sql(node)}")
    inner = wrapper.this
    assert isinstance(inner, exp.Select)
    rename_all(select, subs, alias)
    set_where(inner, both)
    for projection in inner.expressions[1:]:
        projection.set("this", exp.column(_unmerged(projection.alias), table=subs))


def _unmerged(name: str) -> str:
    return name if name == SUBSCRIPTION else name.removeprefix("__")
