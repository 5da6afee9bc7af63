"""Parameters become columns: one query for all subscriptions.

For a query Q with parameters, ``keyed(Q)`` gives ``__bs`` before Q's own outputs, such that the rows of
subscription s, without that column, are what Q gives with the values of s in place of its parameters.
The rewrite follows the shape of the query:

- *SELECT*: the subscriptions' relation joins FROM, and ``:p`` is its column ``p_p``. It stands first, so
  that conditions with parameters may be in the ON of LEFT joins: (s × A) LEFT JOIN B keeps each pair of s
  and A, as it must. After RIGHT and FULL joins it stands last, which is right only as long as no ON
  has parameters; otherwise see ``outerjoins``.
- *derived tables and WITH queries with parameters* are keyed themselves and join on ``__bs``. Those
  without stay as they are.
- *aggregates* group by ``__bs`` as well (and by the parameters that they show, which ``__bs`` determines), and
  so do the totals of ROLLUP, CUBE and GROUPING SETS.
  One over everything, inside another query, must give a row even for no rows; it becomes a LATERAL query.
- *DISTINCT and set operations* compare rows with their ``__bs``, for it is one of their columns.
- *window functions* get ``__bs`` before their partition.
- *subqueries of expressions, LATERAL queries* refer to the columns of the SELECT around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tocsin.compiler.keyed import Keying
from tocsin.compiler.outerjoins import key_every_source
from tocsin.compiler.plan import PARAMETER, SUBSCRIPTION
from tocsin.compiler.ranking import detach, limited
from tocsin.compiler.trees import (
    add_where,
    column,
    conjuncts,
    equal,
    flatten_inner_joins,
    has_aggregate,
    is_grouped,
    is_inner,
    joins_of,
    own_parts,
    sources_of,
    unwrapped,
)


def key_with(query: exp.Query, keying: Keying) -> exp.With | None:
    """Take WITH off a query, its queries keyed where they depend on parameters."""
    with_: exp.With | None = query.args.get("with_")
    query.set("with_", None)
    for cte in with_.expressions if with_ is not None else ():
        if keying.depends(cte.this):
            cte.set("this", keyed(unwrapped(cte.this), keying))
            keying.ctes.add(cte.alias)
    return with_


def keyed(query: exp.Query, keying: Keying, *, is_inner_query: bool = True) -> exp.Query:
    """``query``, a part of another one, with ``__bs`` as its first output."""
    with_ = key_with(query, keying)
    outputs = [p.alias_or_name for p in query.selects]
    ranking = detach(keying.source, query, keep_order=False)
    result = limited(key_core(query, keying, is_inner_query=is_inner_query), ranking, [SUBSCRIPTION], outputs)
    result.set("with_", with_)
    return result


def key_core(query: exp.Query, keying: Keying, *, is_inner_query: bool) -> exp.Query:
    """The same for a query without WITH, ORDER BY and LIMIT.

    An aggregate over everything that is the channel's whole query, or an arm of it, gives no row for a
    subscription without rows: nobody is notified that nothing happened.
    """
    if isinstance(query, exp.SetOperation):
        for arm in ("this", "expression"):
            query.set(arm, _arm(keyed(unwrapped(query.args[arm]), keying, is_inner_query=is_inner_query)))
        return query
    assert isinstance(query, exp.Select)
    if is_inner_query and is_grouped(query) and not query.args.get("group"):
        return _per_subscription(query, keying)
    return _key_select(query, keying)


def _arm(query: exp.Query) -> exp.Expr:
    """An arm of a set operation, in parentheses where it is one itself or has a WITH of its own."""
    return exp.Subquery(this=query) if isinstance(query, exp.SetOperation) or query.args.get("with_") else query


def _per_subscription(query: exp.Select, keying: Keying) -> exp.Select:
    """``SELECT __bs, … FROM subscriptions, LATERAL (query)``: a row for each, even of no rows."""
    alias = keying.alias()
    keying.has_lateral = True
    outputs = [p.alias_or_name for p in query.expressions]
    correlate(query, keying, alias)
    outer = exp.select(exp.alias_(column(alias, SUBSCRIPTION), SUBSCRIPTION), *(column("__one", o) for o in outputs))
    lateral = exp.Lateral(this=exp.Subquery(this=query), alias=exp.TableAlias(this=exp.to_identifier("__one")))
    return outer.from_(keying.table(alias)).join(lateral, join_type="cross")


def _key_select(select: exp.Select, keying: Keying) -> exp.Select:
    flatten_inner_joins(select)
    own = any(keying.depends(part) for part in own_parts(select))
    inner = _key_sources(select, keying)
    alias = _joined_alias(select, keying, inner, own)
    correlate_clauses(select, keying, alias)
    _partition_windows(select, alias)
    _group(select, alias)
    select.set("expressions", [exp.alias_(column(alias, SUBSCRIPTION), SUBSCRIPTION), *select.expressions])
    return select


def _joined_alias(select: exp.Select, keying: Keying, inner: list[str], own: bool) -> str:
    """Bring ``__bs`` into FROM; the alias that has it, and the parameters where ``own`` asks for them."""
    joins = joins_of(select)
    if any(j.side in ("RIGHT", "FULL") for j in joins) and (inner or any(keying.depends(j) for j in joins)):
        return key_every_source(select, keying, inner)
    anchor = _anchor(select, inner)
    alias = anchor if anchor is not None and not own else keying.alias()
    if alias != anchor:
        _insert_subscriptions(select, keying, alias)
    for other in inner:
        if other != alias:
            _join_on_subscription(select, other, alias)
    return alias


def _key_sources(select: exp.Select, keying: Keying) -> list[str]:
    """Key the derived tables of FROM that depend on parameters; the aliases of all that carry ``__bs``."""
    found = []
    for node in list(sources_of(select)):
        if isinstance(node, exp.Subquery) and keying.depends(node.this):
            node.set("this", keyed(unwrapped(node.this), keying))
            found.append(node.alias)
        elif isinstance(node, exp.Table) and node.name in keying.ctes:
            found.append(node.alias_or_name)
    return found


def _anchor(select: exp.Select, keyed_aliases: Sequence[str]) -> str | None:
    """A keyed source whose ``__bs`` is there in every row: not one that an outer join may fill with NULLs."""
    sure = {select.args["from_"].this.alias_or_name} if "from_" in select.args else set()
    sure |= {join.this.alias_or_name for join in joins_of(select) if is_inner(join)}
    return next((alias for alias in keyed_aliases if alias in sure), None)


def _insert_subscriptions(select: exp.Select, keying: Keying, alias: str) -> None:
    table, joins = keying.table(alias), joins_of(select)
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        select.set("joins", [*joins, exp.Join(this=table, kind="CROSS")])
        return
    first = select.args.get("from_")
    before = [exp.Join(this=first.this, kind="CROSS")] if first is not None else []
    select.set("from_", exp.From(this=table))
    select.set("joins", [*before, *joins])


def _join_on_subscription(select: exp.Select, other: str, alias: str) -> None:
    same = equal(column(other, SUBSCRIPTION), column(alias, SUBSCRIPTION))
    for join in joins_of(select):
        if join.this.alias_or_name == other and not is_inner(join):
            join.set("on", exp.and_(*conjuncts(join.args.get("on")), same))
            return
    add_where(select, same)


def correlate_clauses(select: exp.Select, keying: Keying, alias: str) -> None:
    """Parameters in the clauses of a SELECT, and in what they contain, as columns of ``alias``."""
    for part in list(own_parts(select)):
        correlate(part, keying, alias)


def correlate(node: exp.Expr, keying: Keying, alias: str) -> None:
    """Parameters below ``node`` as columns of ``alias``; keyed WITH queries read there meet its ``__bs``."""
    for inner in list(node.find_all(exp.Select)):
        for read in list(sources_of(inner)):
            if isinstance(read, exp.Table) and read.name in keying.ctes:
                _join_on_subscription(inner, read.alias_or_name, alias)
    for placeholder in list(node.find_all(exp.Placeholder)):
        placeholder.replace(column(alias, PARAMETER + placeholder.name))


def _partition_windows(select: exp.Select, alias: str) -> None:
    parts = [*select.expressions, *(select.args.get("windows") or ())]
    for part in parts:
        for window in part.find_all(exp.Window):
            if window.args.get("alias") is None and window.find_ancestor(exp.Select) is select:
                window.set("partition_by", [column(alias, SUBSCRIPTION), *(window.args.get("partition_by") or ())])


def _group(select: exp.Select, alias: str) -> None:
    """GROUP BY ``__bs`` and the parameters that stand outside of aggregates."""
    if not is_grouped(select):
        return
    group = select.args.get("group") or exp.Group(expressions=[])
    keys = _group_keys(select, group)
    shown = {
        c.name: c for part in (*select.expressions, select.args.get("having")) if part for c in _shown(part, alias)
    }
    grouped = [k for k in keys if not (isinstance(k, exp.Column) and k.table == alias)]
    group.set("expressions", [column(alias, SUBSCRIPTION), *(c.copy() for c in shown.values()), *grouped])
    select.set("group", group)


def _group_keys(select: exp.Select, group: exp.Group) -> list[exp.Expr]:
    """What GROUP BY groups by, in the form to which one more key can be added.

    ALL is spelled out. ``a, b WITH ROLLUP`` becomes ``ROLLUP (a, b)``, so that the new key stays out of the totals, and
    of ``a, b GROUPING SETS (…)`` the sets remain, for they name the keys themselves.
    """
    keys: list[exp.Expr] = group.expressions
    if group.args.get("all"):
        keys = [p.unalias().copy() for p in select.expressions if not has_aggregate(p)]
    for kind in (exp.Rollup, exp.Cube):
        if group.args.get(kind.key):
            keys = [kind(expressions=keys)]
    keys = group.args.get("grouping_sets") or keys
    for clause in ("all", "rollup", "cube", "grouping_sets"):
        group.set(clause, None)
    return keys


def _shown(part: exp.Expr, alias: str) -> list[exp.Column]:
    return [c for c in part.find_all(exp.Column) if c.table == alias and c.name != SUBSCRIPTION]
