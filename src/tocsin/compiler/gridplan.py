# ruff: noqa: S608 - the texts built here are parsed into trees; nothing of a user is in them unprinted
"""The GRID shape: subscriptions grouped by cell, for a distance predicate with parameters.

Where a new record must lie within a subscription's circle, the subscriptions are kept as one row for
each cell and each combination of equality parameters, holding an array of all that cover it. New
records are few and are broadcast; each finds its cells' arrays by equality, ``inline`` makes
pairs, and the exact test decides. Spreading is done once, when people subscribe.
"""

from __future__ import annotations

from sqlglot import exp

from tocsin.compiler.cells import Point, level_of, probe_sql
from tocsin.compiler.distance import Within, within_of
from tocsin.compiler.drivers import is_new_table
from tocsin.compiler.functions import print_sql
from tocsin.compiler.plan import PARAMETER, SUBSCRIPTION, Grid
from tocsin.compiler.spatial import DONE, Space
from tocsin.compiler.spread import merged_name, remove_source, rename_all, wrap
from tocsin.compiler.trees import (
    is_inner,
    joins_of,
    set_where,
    source_named,
    sources_of,
    tables_of,
    where_conjuncts,
)

_CELLS = ("__cx", "__cy", "__cz")


def join_grid(select: exp.Select, relation: str, space: Space) -> Grid | None:
    """Join the grid instead of the flat relation where the query allows; what the grid must be."""
    subs = next((s.alias_or_name for s in sources_of(select) if s.name == space.subscriptions), None)
    if subs is None:
        return None
    for condition in where_conjuncts(select):
        within = within_of(condition)
        if within is None or (driver := _driver(select, subs, within)) is None:
            continue
        if not tables_of(within.one[0]) == tables_of(within.one[1]) == {driver}:
            within = within.turned()
        condition.meta[DONE] = True
        return _join(select, subs, driver, within, relation, space)
    return None


def _driver(select: exp.Select, subs: str, within: Within) -> str | None:
    """The new source that lies within a circle of parameters alone."""
    for turned in (within, within.turned()):
        place = tables_of(turned.one[0]) | tables_of(turned.one[1])
        bare = all(_parameter(c, subs) for c in turned.other)
        reach = turned.radius_const is not None or _parameter(turned.radius, subs) is not None
        if len(place) == 1 and bare and reach and _may_lead(select, alias := next(iter(place))):
            return alias
    return None


def _parameter(node: exp.Expr, subs: str) -> str | None:
    node = node.unnest()
    is_bare = isinstance(node, exp.Column) and node.table == subs and node.name != SUBSCRIPTION
    return node.name.removeprefix(PARAMETER) if is_bare else None


def _may_lead(select: exp.Select, alias: str) -> bool:
    """Whether the source can stand first: with outer joins, only if it did."""
    found = source_named(select, alias)
    joins = joins_of(select)
    if found is None or not is_new_table(found) or not isinstance(found, exp.Table):
        return False
    return all(is_inner(join) for join in joins) or joins[0].this is found


def _join(select: exp.Select, subs: str, driver: str, within: Within, relation: str, space: Space) -> Grid:
    keys = _take_equalities(select, subs, driver)
    radius = within.radius_const
    grid = Grid(
        sphere=within.sphere,
        x_param=str(_parameter(within.other[0], subs)),
        y_param=str(_parameter(within.other[1], subs)),
        radius_param=None if radius is not None else _parameter(within.radius, subs),
        radius_const=radius,
        equal_params=tuple(keys),
        cell=space.cell,
    )
    remove_source(select, subs)
    _lead(select, driver)
    wrap(select, driver, _template(driver, within, keys, relation, space))
    rename_all(select, subs, driver)
    return grid


def _take_equalities(select: exp.Select, subs: str, driver: str) -> dict[str, exp.Expr]:
    """Equalities of the record with a parameter, out of WHERE: parameter to record's expression."""
    keys: dict[str, exp.Expr] = {}
    kept = []
    for condition in where_conjuncts(select):
        found = _equality(condition, subs, driver)
        if found is not None and found[0] not in keys:
            keys[found[0]] = found[1]
        else:
            kept.append(condition)
    set_where(select, kept)
    return dict(sorted(keys.items()))


def _equality(condition: exp.Expr, subs: str, driver: str) -> tuple[str, exp.Expr] | None:
    if isinstance(condition, exp.EQ):
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            parameter = _parameter(one, subs)
            if parameter is not None and tables_of(other) == {driver} and other.find(exp.Query) is None:
                return parameter, other
    return None


def _lead(select: exp.Select, driver: str) -> None:
    """Put the driver first, since what follows may refer to the subscriptions that come with it."""
    first = select.args["from_"].this
    if first.alias_or_name == driver:
        return
    node = remove_source(select, driver)
    select.set("from_", exp.From(this=node))
    select.set("joins", [exp.Join(this=first, kind="CROSS"), *joins_of(select)])


def _template(driver: str, within: Within, keys: dict[str, exp.Expr], relation: str, space: Space) -> str:
    point = Point.of(within.sphere, *within.one)
    cells = _CELLS[: len(point.axes_sql())]
    equal = [f"__g.`k_{name}` = {print_sql(value)}" for name, value in keys.items()]
    radius = within.radius_const
    if radius is not None:
        level = level_of(radius, space.cell)
        numbers = [str(level), *point.cell_sql(space.cell, level)]
        records = f"__hole AS `{driver}`"
    else:
        numbers = [f"`{driver}`.`__p{i}`" for i in range(len(cells) + 1)]
        columns = ", ".join(f"`__p{i}`" for i in range(len(cells) + 1))
        probes = probe_sql(point, space.cell, space.levels)
        records = (
            f"(SELECT `{driver}`.*, {columns} FROM __hole LATERAL VIEW INLINE({probes}) __p AS {columns}) AS `{driver}`"
        )
    equal += [f"__g.`{c}` = {n}" for c, n in zip(("__level", *cells), numbers, strict=True)]
    given = ", ".join(f"`{merged_name(c)}`" for c in (SUBSCRIPTION, *space.columns))
    return (
        f"SELECT /*+ BROADCAST(`{driver}`) */ `{driver}`.*, {given} FROM {records} "
        f"JOIN {relation} AS __g ON {' AND '.join(equal)} LATERAL VIEW INLINE(__g.subs) __e AS {given}"
    )
