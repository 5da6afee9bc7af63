"""The order of inner joins, and each condition at the first join that can test it.

Spark reorders joins, but not across hints, and we hint that new records be broadcast. So every SELECT
whose joins are all inner is put into an order in which each source meets those before it by an
equality, if there is such an order; what would be a product of subscriptions and records then is none.
LATERAL queries come last, in their own order, since they may refer to all others.
"""

from __future__ import annotations

from sqlglot import exp

from tocsin.compiler.trees import is_inner, joins_of, set_where, sources_of, tables_of, where_conjuncts


def arrange(tree: exp.Expr) -> None:
    """Arrange the joins of every SELECT below the tree."""
    for select in list(tree.find_all(exp.Select)):
        joins = joins_of(select)
        if joins and all(is_inner(join) and not join.args.get("on") for join in joins):
            _arrange(select)


def _arrange(select: exp.Select) -> None:
    views = select.args.get("laterals") or ()
    sources = [s for s in sources_of(select) if s not in views]
    movable = [s for s in sources if not isinstance(s, exp.Lateral)]
    conditions = where_conjuncts(select)
    ordered = _ordered(movable, conditions) + [s for s in sources if isinstance(s, exp.Lateral)]
    inside = {s.alias_or_name for s in sources}
    rest = [c for c in conditions if c.find(exp.Query) is not None or not tables_of(c) <= inside]
    waiting = [c for c in conditions if not any(c is r for r in rest)]
    placed, joins = {ordered[0].alias_or_name}, []
    first = [c for c in waiting if tables_of(c) <= placed]
    for source in ordered[1:]:
        placed.add(source.alias_or_name)
        ready = [c for c in waiting if tables_of(c) <= placed and not any(c is f for f in first)]
        waiting = [c for c in waiting if not any(c is r for r in ready)]
        joins.append(_join(source, ready))
    select.set("from_", exp.From(this=ordered[0]))
    select.set("joins", joins)
    set_where(select, [*first, *rest])


def _join(source: exp.Expr, conditions: list[exp.Expr]) -> exp.Join:
    if not conditions:
        return exp.Join(this=source, kind="CROSS")
    return exp.Join(this=source, on=exp.and_(*(c.copy() for c in conditions)))


def _ordered(sources: list[exp.Expr], conditions: list[exp.Expr]) -> list[exp.Expr]:
    """Beginning with the first, always one that an equality ties to those already there, if any is."""
    ordered, remaining = sources[:1], sources[1:]
    while remaining:
        placed = {s.alias_or_name for s in ordered}
        chosen = next((s for s in remaining if _is_tied(s.alias_or_name, placed, conditions)), remaining[0])
        ordered.append(chosen)
        remaining = [s for s in remaining if s is not chosen]
    return ordered


def _is_tied(alias: str, placed: set[str], conditions: list[exp.Expr]) -> bool:
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            left, right = tables_of(condition.left), tables_of(condition.right)
            if (left == {alias} and right and right <= placed) or (right == {alias} and left and left <= placed):
                return True
    return False
