"""Distance predicates between two sources become joins on equal cells, then the exact test.

For ``distance(a.x, a.y, b.x, b.y) < radius`` one side is spread over the cells that its circle covers
and the other meets it in the cell of its own point, so every pair within reach meets exactly once, and
Spark sees an equality join instead of a nested loop. Which side is spread:

- the one whose column the radius is, for it knows how far it reaches;
- with a parameter as radius, the side that subscriptions join by equality (the user's own record), or
  the subscription itself where its place is a parameter as well;
- with a number, the new records, because they are few.

The condition itself stays in WHERE. A radius above ``max_radius`` reaches as far as ``max_radius``.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.cells import Point, level_of
from tocsin.compiler.distance import Within, tables_of_place, within_of
from tocsin.compiler.drivers import is_new_table
from tocsin.compiler.parse import DIALECT, Source
from tocsin.compiler.spread import merge_subscriptions, probe, renamed, spread, spread_at
from tocsin.compiler.trees import (
    add_where,
    conjuncts,
    flatten_inner_joins,
    is_outer,
    joins_of,
    source_named,
    sources_of,
    tables_of,
    where_conjuncts,
)

DONE = "has_cells"  # mark of a condition whose cells are joined already


@dataclass
class Space:
    """The grid's settings, and numbers for the columns that the rewrite adds."""

    source: Source
    cell: float
    max_radius: float
    subscriptions: str  # the relation's name
    columns: tuple[str, ...]  # its parameter columns
    _count: int = 0

    @property
    def levels(self) -> int:
        """How many levels circles up to ``max_radius`` take."""
        return level_of(self.max_radius, self.cell) + 1

    def next(self) -> str:
        self._count += 1
        return f"__c{self._count}"


def check_constants(source: Source, tree: exp.Query, max_radius: float) -> None:
    """InvalidQuery where a radius in the text is above the greatest."""
    for node in tree.find_all(exp.LT, exp.LTE, exp.GT, exp.GTE):
        within = within_of(node)
        if within is not None and (radius := within.radius_const) is not None and radius > max_radius:
            raise source.invalid(f"the radius {radius:g} is too large", node, f"at most {max_radius:g}")


def radius_parameters(tree: exp.Query) -> tuple[str, ...]:
    """The parameters that are radii: their values must not exceed ``max_radius``."""
    found = [within_of(node) for node in tree.find_all(exp.LT, exp.LTE, exp.GT, exp.GTE)]
    radii = [w.radius.unnest() for w in found if w is not None]
    return tuple(sorted({r.name for r in radii if isinstance(r, exp.Placeholder)}))


def join_on_cells(tree: exp.Expr, space: Space) -> None:
    """Rewrite every SELECT of the tree."""
    for select in list(tree.find_all(exp.Select)):
        flatten_inner_joins(select)
        for join in joins_of(select):
            if join.side == "LEFT":
                _left_join(select, join, space)
        if not any(is_outer(join) for join in joins_of(select)):
            for condition in where_conjuncts(select):
                if not condition.meta.get(DONE) and (within := within_of(condition)) is not None:
                    _rewrite(select, within, space)


def _rewrite(select: exp.Select, within: Within, space: Space) -> None:
    one, other = tables_of_place(within.one), tables_of_place(within.other)
    if len(one) != 1 or len(other) != 1 or one == other:
        return
    (a,), (b,) = one, other
    local = {s.alias_or_name for s in sources_of(select) if isinstance(s, exp.Table | exp.Subquery)}
    reach = tables_of(within.radius)
    if a in local and b in local:
        chosen = _side_to_spread(select, a, b, reach, space)
    elif not reach and within.radius_const is not None and (a in local) != (b in local):
        chosen = (a if a in local else b), None  # the other belongs to a query around this one
    else:
        return
    if chosen is None:
        return
    alias, merged = chosen
    if alias == b:
        within = within.turned()
    if merged is not None:
        radius = renamed(within.radius, merged, alias)
        within = Within(within.sphere, within.one, within.other, radius, within.inclusive)
        merge_subscriptions(select, alias, merged, space.columns)
    _meet(select, alias, within, space)


def _side_to_spread(select: exp.Select, a: str, b: str, reach: set[str], space: Space) -> tuple[str, str | None] | None:
    """(the alias to spread, the subscriptions' alias to merge into it first or None)."""
    subs = next((s.alias_or_name for s in sources_of(select) if s.name == space.subscriptions), None)
    if not reach:
        return (b if _is_new(select, b) and not _is_new(select, a) else a), None
    if reach == {a}:
        return a, None
    if reach == {b}:
        return b, None
    if subs is None or subs in (a, b) or not reach - {subs} <= {a, b} or len(reach) > 2:
        return None
    owner = next(iter(reach - {subs}), None)
    return owner or _joined_to(select, subs, a, b), subs


def _is_new(select: exp.Select, alias: str) -> bool:
    found = source_named(select, alias)
    return found is not None and is_new_table(found)


def _joined_to(select: exp.Select, subs: str, a: str, b: str) -> str:
    for condition in where_conjuncts(select):
        if isinstance(condition, exp.EQ):
            for alias in (a, b):
                if tables_of(condition) == {alias, subs}:
                    return alias
    return b if _is_new(select, a) else a


def _meet(select: exp.Select, spread_alias: str, within: Within, space: Space) -> None:
    """Spread the first place of ``within``, let the second probe, and ask for equal cells."""
    (other,) = tables_of_place(within.other)
    circle, point = Point.of(within.sphere, *within.one), Point.of(within.sphere, *within.other)
    prefix, radius = space.next(), within.radius_const
    if radius is not None:
        level = level_of(radius, space.cell)
        mine = spread_at(select, spread_alias, circle, radius, space.cell * 2**level, prefix)
        theirs = point.cell_sql(space.cell, level)
    else:
        mine = spread(select, spread_alias, circle, within.radius, space.cell, space.max_radius, prefix, space.levels)
        theirs = [f"`{other}`.{name}" for name in probe(select, other, point, space.cell, space.levels, prefix)]
    for condition in _same_cells(spread_alias, mine, theirs):
        add_where(select, condition)


def _same_cells(alias: str, mine: list[str], theirs: list[str]) -> list[exp.Expr]:
    return [exp.condition(f"`{alias}`.{a} = {b}", dialect=DIALECT) for a, b in zip(mine, theirs, strict=True)]


def _left_join(select: exp.Select, join: exp.Join, space: Space) -> None:
    """In the ON of a LEFT join the right side is spread: rows of the left must not be multiplied.

    Only with a number as radius, for otherwise the left would have to probe several levels.
    """
    alias, conditions = join.this.alias_or_name, conjuncts(join.args.get("on"))
    for condition in conditions:
        within = within_of(condition)
        if within is None or (radius := within.radius_const) is None or isinstance(join.this, exp.Lateral):
            continue
        if tables_of_place(within.other) == {alias}:
            within = within.turned()
        left = tables_of_place(within.other)
        if tables_of_place(within.one) != {alias} or len(left) != 1 or alias in left:
            continue
        level = level_of(radius, space.cell)
        size, prefix = space.cell * 2**level, space.next()
        mine = spread_at(select, alias, Point.of(within.sphere, *within.one), radius, size, prefix)
        theirs = Point.of(within.sphere, *within.other).cell_sql(space.cell, level)
        join.set("on", exp.and_(*conditions, *_same_cells(alias, mine, theirs), dialect=DIALECT))
        return
