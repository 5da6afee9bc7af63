"""The driving record's sequence number, carried to where the rows of a channel come out.

A plain SELECT gives each row the number of the new record that it comes from. Where the new record
is read inside a derived table or a WITH query that is itself plain, the number is added to its outputs.
Grouped, DISTINCT and set-operation results belong to no single record; theirs is 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tocsin.compiler.drivers import DATASET, Catalog, is_new_table
from tocsin.compiler.plan import SEQUENCE
from tocsin.compiler.trees import (
    column,
    conjuncts,
    is_global_aggregate,
    is_outer,
    is_plain,
    joins_of,
    sources_of,
    tables_of,
    unwrapped,
    where_conjuncts,
)


def carry_sequence(tree: exp.Query) -> exp.Expr:
    """The expression of the outermost query for the sequence number."""
    ctes = {cte.alias: cte for cte in tree.find_all(exp.CTE)}
    found = _carried(tree, ctes, set())
    return found if found is not None else exp.Literal.number(0)


def _carried(query: exp.Query, ctes: Mapping[str, exp.CTE], done: set[str]) -> exp.Expr | None:
    if not isinstance(query, exp.Select) or not is_plain(query):
        return None
    numbers: list[exp.Expr] = []
    for source in sources_of(query):
        if is_new_table(source) or _inner_carries(source, ctes, done):
            numbers.append(column(source.alias_or_name, SEQUENCE))
    if not numbers:
        return None
    if any(is_outer(join) for join in joins_of(query)):
        numbers = [exp.func("COALESCE", number, exp.Literal.number(0)) for number in numbers]
    return numbers[0] if len(numbers) == 1 else exp.func("GREATEST", *numbers)


def _inner_carries(source: exp.Expr, ctes: Mapping[str, exp.CTE], done: set[str]) -> bool:
    """Let a derived table or WITH query give the number out, if it has one."""
    name = source.name if isinstance(source, exp.Table) else ""
    if name in done:
        return True
    if isinstance(source, exp.Subquery):
        inner = unwrapped(source.this)
    elif name in ctes:
        inner = unwrapped(ctes[name].this)
    else:
        return False
    number = _carried(inner, ctes, done)
    if number is None or not isinstance(inner, exp.Select):
        return False
    inner.append("expressions", exp.alias_(number, SEQUENCE))
    if name:
        done.add(name)
    return True


def fans_out(query: exp.Query, catalog: Catalog) -> bool:
    """Whether one record can make several rows for one subscription; if so they need ranks.

    A join adds at most one row where it sets the whole primary key of a keyed dataset to values of
    sources that are single themselves, a LATERAL query where it is an aggregate over everything, SEMI and
    ANTI joins always.
    """
    if not isinstance(query, exp.Select) or not is_plain(query):
        return not is_global_aggregate(query)
    sources = list(sources_of(query))
    drivers = [s for s in sources if is_new_table(s)]
    if len(drivers) != 1:
        return True
    single, waiting = {drivers[0].alias_or_name}, [s for s in sources if s is not drivers[0]]
    while found := [s for s in waiting if _adds_one_row(query, s, catalog, single)]:
        single |= {s.alias_or_name for s in found}
        waiting = [s for s in waiting if s.alias_or_name not in single]
    return bool(waiting)


def _adds_one_row(select: exp.Select, source: exp.Expr, catalog: Catalog, single: set[str]) -> bool:
    join = source.parent
    if isinstance(join, exp.Join) and join.kind in ("SEMI", "ANTI"):
        return True
    if isinstance(source, exp.Lateral | exp.Subquery):
        return isinstance(source.this, exp.Query) and is_global_aggregate(source.this)
    dataset = catalog.get(source.meta.get(DATASET, ""))
    if dataset is None or not dataset.is_keyed:
        return False
    conditions = where_conjuncts(select)
    if isinstance(join, exp.Join):
        conditions += conjuncts(join.args.get("on"))
    fixed = {name for c in conditions for name in _fixed_column(c, source.alias_or_name, single)}
    return {name.lower() for name in dataset.primary_key} <= fixed


def _fixed_column(condition: exp.Expr, alias: str, single: set[str]) -> list[str]:
    """The column of ``alias`` that an equality sets to a value of single sources."""
    if not isinstance(condition, exp.EQ):
        return []
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        if isinstance(one, exp.Column) and one.table == alias and tables_of(other) <= single:
            return [one.name]
    return []
