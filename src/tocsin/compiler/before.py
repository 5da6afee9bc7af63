"""Two drivers: a pair is new when it matches now and did not match before the window.

For drivers a and b the new pairs are Δa ⋈ b and (a without Δa) ⋈ Δb, two queries whose rows are disjoint.
In each, a pair is dropped if the matching conditions held for the records' versions before the window:
someone who walks beside a fire is told once, not at every step. The before-image of an unchanged
record is the record itself; a record that is new altogether has none, so its pairs are all new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from tocsin.compiler.drivers import DATASET, VIEW
from tocsin.compiler.plan import BEFORE, View
from tocsin.compiler.problem import Problem
from tocsin.compiler.trees import (
    add_where,
    column,
    flatten_inner_joins,
    is_inner,
    is_plain,
    joins_of,
    source_named,
    tables_of,
    where_conjuncts,
)
from tocsin.model.catalog import DatasetSpec


def branches(problem: Problem, tree: exp.Query, pair: tuple[str, str]) -> list[exp.Select]:
    """The two queries, whose rows together are the new pairs."""
    if not isinstance(tree, exp.Select) or not is_plain(tree):
        raise problem.source.invalid(
            "is_new(a) OR is_new(b) is not possible with aggregates or DISTINCT", tree, "a plain SELECT"
        )
    flatten_inner_joins(tree)
    for alias in pair:
        _check_certain(problem, tree, alias)
    a, b = pair
    first = _branch(problem, tree.copy(), {a: View.NEW_BEFORE, b: View.NOW_BEFORE})
    second = _branch(problem, tree.copy(), {a: View.OLD, b: View.NEW_BEFORE})
    return [first, second]


def _check_certain(problem: Problem, select: exp.Select, alias: str) -> None:
    for join in joins_of(select):
        if join.this.alias_or_name == alias and not is_inner(join):
            raise problem.source.invalid("a driving dataset cannot be outer joined", join, "an inner join")


def _branch(problem: Problem, select: exp.Select, views: Mapping[str, View]) -> exp.Select:
    datasets: dict[str, DatasetSpec] = {}
    for alias, view in views.items():
        table = source_named(select, alias)
        assert table is not None
        table.meta[VIEW] = view
        datasets[alias] = problem.catalog[table.meta[DATASET]]
    changing = next(alias for alias, view in views.items() if view is View.NEW_BEFORE)
    if datasets[changing].is_keyed:
        add_where(select, _was_not_matched(select, views, datasets))
    else:  # what is appended has no version before
        _without_before(select, views)
    return select


def _without_before(select: exp.Select, views: Mapping[str, View]) -> None:
    plain = {View.NEW_BEFORE: View.NEW, View.NOW_BEFORE: View.NOW}
    for alias, view in views.items():
        table = source_named(select, alias)
        assert table is not None
        table.meta[VIEW] = plain.get(view, view)


def _was_not_matched(select: exp.Select, views: Mapping[str, View], datasets: Mapping[str, DatasetSpec]) -> exp.Expr:
    """``NOT coalesce(both had a version before AND the conditions held for those, false)``"""
    with_image = [alias for alias, view in views.items() if view is not View.OLD]
    past = _past(with_image)
    held = [c.transform(past) for c in where_conjuncts(select) if tables_of(c) & set(views)]
    existed = [_existed(alias, datasets[alias]) for alias in with_image]
    return exp.not_(exp.func("COALESCE", exp.and_(*existed, *held), exp.false()))


def _past(aliases: list[str]) -> Callable[[exp.Expr], exp.Expr]:
    def turn(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.table in aliases:
            return column(node.table, BEFORE + node.name)
        return node

    return turn


def _existed(alias: str, dataset: DatasetSpec) -> exp.Expr:
    """A key is never NULL; without one, a record of NULLs only counts as absent."""
    names = dataset.primary_key[:1] or tuple(c.name for c in dataset.columns)
    there = [exp.not_(exp.Is(this=column(alias, BEFORE + n.lower()), expression=exp.null())) for n in names]
    return exp.or_(*there)
