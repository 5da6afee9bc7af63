"""The join plan: one query for all subscriptions, ``__bs, __seq, __ord`` and the channel's columns."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.arrange import arrange
from tocsin.compiler.before import branches
from tocsin.compiler.disguised import join_on_items
from tocsin.compiler.drivers import Drivers, attach_relations, is_new_table
from tocsin.compiler.functions import expand, print_sql
from tocsin.compiler.gridplan import join_grid
from tocsin.compiler.keyed import Keying
from tocsin.compiler.keying import key_core, key_with
from tocsin.compiler.laterals import order_by_aliases
from tocsin.compiler.plan import PARAMETER, SEQUENCE, SUBSCRIPTION, Grid, JoinPlan, SubscriptionShape
from tocsin.compiler.problem import Problem, flat_name, grid_name
from tocsin.compiler.ranking import detach, finished
from tocsin.compiler.sequence import carry_sequence, fans_out
from tocsin.compiler.spatial import Space, join_on_cells
from tocsin.compiler.trees import is_inner, joins_of, sources_of


@dataclass
class Joined:
    """A join plan whose tree is not printed yet."""

    tree: exp.Select
    subscriptions: str
    grid: Grid | None
    is_lateral: bool

    def plan(self) -> JoinPlan:
        shape = SubscriptionShape.GRID if self.grid else SubscriptionShape.FLAT
        return JoinPlan(print_sql(self.tree), self.subscriptions, shape, self.grid, self.is_lateral)


def join_plan(problem: Problem, drivers: Drivers) -> Joined:
    """The plan as a tree."""
    tree, outputs = problem.tree, problem.outputs
    keying = Keying(problem.source, flat_name(problem.channel), tuple(problem.parameters))
    is_ranked = fans_out(tree, problem.catalog)
    sequence = carry_sequence(tree)
    with_ = key_with(tree, keying)
    ranking = detach(problem.source, tree, keep_order=True)
    if drivers.pair is not None:
        core: exp.Query = _union([_core(b, keying, sequence) for b in branches(problem, tree, drivers.pair)])
    else:
        core = _core(tree, keying, sequence)
    space = _space(problem)
    grid = _grid(core, keying, space, problem)
    for part in (core, with_):
        if part is not None:
            join_on_cells(part, space)
            join_on_items(part, space.subscriptions)
            arrange(part)
    _broadcast_new(core)
    final = finished(core, ranking, [SUBSCRIPTION], outputs, problem.columns, is_ranked=is_ranked)
    final.set("with_", with_)
    _complete(final, problem)
    name = grid_name(problem.channel) if grid else flat_name(problem.channel)
    return Joined(final, name, grid, keying.has_lateral)


def _complete(final: exp.Select, problem: Problem) -> None:
    order_by_aliases(final)
    attach_relations(final, problem.catalog)
    expand(final)


def _core(query: exp.Query, keying: Keying, sequence: exp.Expr) -> exp.Query:
    """The keyed query with ``__bs, __seq`` before its outputs."""
    core = key_core(query, keying, is_inner_query=False)
    if isinstance(core, exp.Select):
        bs, *rest = core.expressions
        core.set("expressions", [bs, exp.alias_(sequence.copy(), SEQUENCE), *rest])
        return core
    rows = exp.Subquery(this=core, alias=exp.TableAlias(this=exp.to_identifier("__u")))
    names = [p.alias_or_name for p in core.selects[1:]]
    head = [exp.column(SUBSCRIPTION), exp.alias_(sequence.copy(), SEQUENCE)]
    return exp.select(*head, *(exp.column(n) for n in names)).from_(rows)


def _union(parts: list[exp.Query]) -> exp.Query:
    first, second = parts
    return exp.Union(this=first, expression=second, distinct=False)


def _space(problem: Problem) -> Space:
    columns = tuple(PARAMETER + name for name in problem.parameters)
    return Space(problem.source, problem.cell, problem.max_radius, flat_name(problem.channel), columns)


def _grid(core: exp.Query, keying: Keying, space: Space, problem: Problem) -> Grid | None:
    """The grid serves one use of the subscriptions only; its relation replaces the flat one."""
    if not isinstance(core, exp.Select) or keying.uses != 1:
        return None
    return join_grid(core, grid_name(problem.channel), space)


def _broadcast_new(core: exp.Query) -> None:
    """New records are few, subscriptions many and cached: the records travel.

    Not with outer joins, whose preserved side Spark cannot broadcast; it would only complain.
    """
    for select in core.find_all(exp.Select):
        new = [s.alias_or_name for s in sources_of(select) if is_new_table(s)]
        if new and joins_of(select) and all(is_inner(join) for join in joins_of(select)):
            tables = [exp.Table(this=exp.to_identifier(alias)) for alias in new]
            select.set("hint", exp.Hint(expressions=[exp.JoinHint(this="BROADCAST", expressions=tables)]))
