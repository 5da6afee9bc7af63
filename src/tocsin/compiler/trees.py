"""Small tools over query trees that several rewrites share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from tocsin.compiler.functions import AGGREGATE_ANONYMOUS
from tocsin.compiler.parse import DIALECT


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that are joined by AND, without outer parentheses."""
    found: list[exp.Expr] = []
    waiting = [condition] if condition is not None else []
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        else:
            found.append(part)
    return found


def where_conjuncts(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return conjuncts(where.this) if where is not None else []


def set_where(select: exp.Select, conditions: Iterable[exp.Expr]) -> None:
    """WHERE all of ``conditions``, or no WHERE at all."""
    parts = [condition.copy() for condition in conditions]
    select.set("where", exp.Where(this=exp.and_(*parts, dialect=DIALECT)) if parts else None)


def add_where(select: exp.Select, condition: exp.Expr) -> None:
    set_where(select, [*where_conjuncts(select), condition])


def column(table: str, name: str) -> exp.Column:
    return exp.column(name, table=table)


def equal(left: exp.Expr, right: exp.Expr) -> exp.EQ:
    return exp.EQ(this=left, expression=right)


def tables_of(node: exp.Expr) -> set[str]:
    """The aliases that the columns of an expression name."""
    return {c.table for c in node.find_all(exp.Column)}


def joins_of(select: exp.Select) -> list[exp.Join]:
    return list(select.args.get("joins") or ())


def sources_of(select: exp.Select) -> Iterator[exp.Expr]:
    """The tables, derived tables and laterals of FROM, in order."""
    if (from_ := select.args.get("from_")) is not None:
        yield from_.this
    for join in joins_of(select):
        yield join.this
    yield from select.args.get("laterals") or ()


def source_named(select: exp.Select, alias: str) -> exp.Expr | None:
    return next((s for s in sources_of(select) if s.alias_or_name == alias), None)


def derived(query: exp.Query, alias: str) -> exp.Subquery:
    """``(query) AS alias``"""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))


def parsed(text: str) -> exp.Select:
    """A SELECT of our own making; values that come from users are printed from trees before."""
    tree: exp.Expr = exp.maybe_parse(text, dialect=DIALECT)
    assert isinstance(tree, exp.Select)
    return tree


def unwrapped(query: exp.Expr) -> exp.Query:
    """A query without parentheses around it; a WITH inside them moves to the query."""
    while isinstance(query, exp.Subquery):
        inner = query.this
        if (with_ := query.args.get("with_")) is not None:
            inner.set("with_", with_)
        query = inner
    assert isinstance(query, exp.Query)
    return query


def is_outer(join: exp.Join) -> bool:
    return join.side in ("LEFT", "RIGHT", "FULL") and join.kind not in ("SEMI", "ANTI")


def is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS")


def flatten_inner_joins(select: exp.Select) -> None:
    """Where all joins are inner, ON is WHERE: one place to look for conditions."""
    joins = joins_of(select)
    if not all(is_inner(join) for join in joins):
        return
    for join in joins:
        for condition in conjuncts(join.args.get("on")):
            add_where(select, condition)
        join.set("on", None)
        join.set("kind", "CROSS")


def own_parts(select: exp.Select) -> Iterator[exp.Expr]:
    """The clauses of a SELECT itself: all but WITH and what FROM reads, yet with the ONs."""
    for key, value in select.args.items():
        if key in ("with_", "from_", "joins", "laterals") or not value:
            continue
        yield from value if isinstance(value, list) else [value]
    for join in joins_of(select):
        if (on := join.args.get("on")) is not None:
            yield on
    yield from select.args.get("laterals") or ()
    for source in sources_of(select):
        if isinstance(source, exp.Lateral) and not source.args.get("view"):
            yield source


def is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in AGGREGATE_ANONYMOUS
    return isinstance(node, exp.AggFunc)


def _in_scope(node: exp.Expr) -> Iterator[exp.Expr]:
    """Nodes of an expression that are outside of subqueries."""
    yield from node.walk(prune=lambda n: isinstance(n, exp.Query))


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate, not a window function, is computed in the expression itself."""
    return any(is_aggregate(n) and not isinstance(_around(n), exp.Window) for n in _in_scope(node))


def _around(node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        node, parent = parent, parent.parent
    return parent if isinstance(parent, exp.Window) and parent.this is node else None


def is_global_aggregate(query: exp.Expr) -> bool:
    """Whether the query always gives exactly one row: aggregates without GROUP BY or HAVING."""
    select = unwrapped(query)
    if not isinstance(select, exp.Select) or select.args.get("group") or select.args.get("having"):
        return False
    return any(has_aggregate(p) for p in select.expressions) and not select.args.get("limit")


def is_grouped(select: exp.Select) -> bool:
    """Whether rows are merged: GROUP BY, aggregates, HAVING."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(has_aggregate(p) for p in select.expressions)


def is_plain(query: exp.Expr) -> bool:
    """A SELECT whose every row comes from one row of FROM."""
    return isinstance(query, exp.Select) and not is_grouped(query) and not query.args.get("distinct")
