"""Correlated queries in the form that Spark accepts.

Spark refuses references to an outer query in ORDER BY. Such a key is selected under a name, the order
goes by that name, and a query around it gives out the original columns.
"""

from __future__ import annotations

from sqlglot import exp

from tocsin.compiler.trees import derived, sources_of, tables_of


def order_by_aliases(tree: exp.Query) -> None:
    """Rewrite every SELECT below the tree whose ORDER BY names columns from outside of it."""
    for select in list(tree.find_all(exp.Select)):
        order = select.args.get("order")
        if order is None or select is tree:
            continue
        inside = {s.alias_or_name for s in sources_of(select)} | {""}
        if tables_of(order) <= inside:
            continue
        names = [p.alias_or_name for p in select.expressions]
        place = select.parent
        outer = exp.select(*(exp.column(n) for n in names))
        select.replace(outer)
        assert place is not None
        _name_keys(select, order, inside)
        outer.from_(derived(select, "__o"), copy=False)


def _name_keys(select: exp.Select, order: exp.Order, inside: set[str]) -> None:
    for number, key in enumerate(order.expressions):
        if not tables_of(key) <= inside:
            select.append("expressions", exp.alias_(key.this.copy(), f"__key{number}"))
            key.set("this", exp.column(f"__key{number}"))
