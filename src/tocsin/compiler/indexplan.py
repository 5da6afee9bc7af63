"""Writing the index plan: probes and payload of the candidate rows, for an index to match."""

from __future__ import annotations

import re

from sqlglot import exp

from tocsin.compiler.arrange import arrange
from tocsin.compiler.drivers import attach_relations, is_new_table
from tocsin.compiler.functions import expand, print_sql
from tocsin.compiler.index import PROBE, Conditions, NotIndexable, split_conditions
from tocsin.compiler.laterals import order_by_aliases
from tocsin.compiler.plan import SEQUENCE, IndexPlan
from tocsin.compiler.problem import Problem, flat_name
from tocsin.compiler.ranking import detach, finished
from tocsin.compiler.sequence import carry_sequence, fans_out
from tocsin.compiler.spatial import Space, join_on_cells
from tocsin.compiler.trees import flatten_inner_joins, joins_of, set_where, sources_of
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Near, Predicate

_WORDS: dict[type[Predicate], str] = {
    Equal: "equality",
    Member: "a list",
    Compare: "a comparison",
    HasWord: "a keyword",
    Near: "a distance",
}


def index_plan(problem: Problem) -> tuple[IndexPlan, str]:
    """The plan and one sentence on it; NotIndexable with the reason otherwise."""
    select = problem.tree
    if isinstance(select, exp.Select):
        flatten_inner_joins(select)
    found = split_conditions(select, problem.catalog, problem.parameters, problem.max_radius)
    assert isinstance(select, exp.Select)
    set_where(select, found.rest)
    if not any(is_new_table(s) for s in sources_of(select)):
        raise NotIndexable("the new records are inside another query")
    return _write(problem, select, found), _why(found)


def _write(problem: Problem, select: exp.Select, found: Conditions) -> IndexPlan:
    spec = IndexSpec(
        predicates=tuple(found.predicates),
        probe_types=tuple((name, kind) for name, _, kind in found.probes),
        param_types=tuple(found.param_types.items()),
        cell=problem.cell,
    )
    simple = _parts(problem, select, found) if _is_simple(select) else None
    relation = _driving_relation(problem, select)
    sql = _sql(problem, select, found)
    filter_sql, probes, outputs = simple or (None, (), ())
    return IndexPlan(sql, spec, _conditions(found), simple is not None, relation, filter_sql, probes, outputs)


def _conditions(found: Conditions) -> tuple[str, ...]:
    expressions = {name: node.sql(dialect="spark") for name, node, _ in found.probes}
    names = re.compile(rf"\b{PROBE}\d+\b")
    return tuple(names.sub(lambda name: expressions[name[0]], str(one)) for one in found.predicates)


def _why(found: Conditions) -> str:
    if not found.predicates:
        return "index, because no condition has a parameter: every subscription gets every row"
    kinds = list(dict.fromkeys(_WORDS[type(p)] for p in found.predicates))
    listed = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} and {kinds[-1]}"
    return f"index, because parameters only meet columns of the row, by {listed}"


def _is_simple(select: exp.Select) -> bool:
    """Only the driver in FROM, no other query anywhere, no window: filter and projection of one scan."""
    alone = not joins_of(select) and not select.args.get("laterals") and len(list(select.find_all(exp.Query))) == 1
    return alone and select.find(exp.Window) is None and not select.args.get("order")


def _driving_relation(problem: Problem, select: exp.Select) -> str:
    copy = select.copy()
    attach_relations(copy, problem.catalog)
    return next(s.name for s in sources_of(copy) if is_new_table(s))


Pairs = tuple[tuple[str, str], ...]


def _parts(problem: Problem, select: exp.Select, found: Conditions) -> tuple[str | None, Pairs, Pairs]:
    where = select.args.get("where")
    outputs = zip(problem.columns, (p.unalias() for p in select.expressions), strict=True)
    return (
        _unqualified(where.this) if where is not None else None,
        tuple((name, _unqualified(node)) for name, node, _ in found.probes),
        tuple((name, _unqualified(node)) for name, node in outputs),
    )


def _unqualified(node: exp.Expr) -> str:
    holder = exp.select(node.copy())
    for found in holder.find_all(exp.Column):
        found.set("table", None)
    expand(holder)
    return print_sql(holder.expressions[0])


def _sql(problem: Problem, select: exp.Select, found: Conditions) -> str:
    outputs = [p.alias_or_name for p in select.expressions]
    is_ranked, sequence = fans_out(select, problem.catalog), carry_sequence(select)
    with_ = select.args.get("with_")
    select.set("with_", None)
    ranking = detach(problem.source, select, keep_order=True)
    probes = [exp.alias_(node, name) for name, node, _ in found.probes]
    select.set("expressions", [exp.alias_(sequence, SEQUENCE), *probes, *select.expressions])
    space = Space(problem.source, problem.cell, problem.max_radius, flat_name(problem.channel), ())
    for part in (select, with_):
        if part is not None:
            join_on_cells(part, space)
            arrange(part)
    names = [name for name, _, _ in found.probes]
    final = finished(select, ranking, [], [*names, *outputs], [*names, *problem.columns], is_ranked=is_ranked)
    final.set("with_", with_)
    order_by_aliases(final)
    attach_relations(final, problem.catalog)
    expand(final)
    return print_sql(final)
