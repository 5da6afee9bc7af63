# ruff: noqa: S608 - the texts built here are parsed into trees; nothing of a user is in them unprinted
"""Equalities in disguise: list and keyword parameters as joins that Spark can hash.

``x IN (:list)`` is an equality with one of the list's items, ``has_word(text, :word)`` one of the word
with one of the text's. Where no plain equality ties subscriptions to another source, the items (each once)
become rows and the equality a condition; the original one stays as the exact test.
"""

from __future__ import annotations

from sqlglot import exp

from tocsin.compiler.functions import our_function, print_sql, words_of
from tocsin.compiler.parse import DIALECT
from tocsin.compiler.spread import wrap
from tocsin.compiler.trees import add_where, is_inner, joins_of, sources_of, tables_of, where_conjuncts


def join_on_items(tree: exp.Expr, subscriptions: str) -> None:
    """Rewrite every SELECT that reads the subscriptions and joins them by nothing better."""
    for select in list(tree.find_all(exp.Select)):
        subs = next((s.alias_or_name for s in sources_of(select) if s.name == subscriptions), None)
        if subs is None or not all(is_inner(join) for join in joins_of(select)) or _is_tied(select, subs):
            continue
        for condition in where_conjuncts(select):
            if _by_list(select, condition, subs) or _by_word(select, condition, subs):
                break


def _is_tied(select: exp.Select, subs: str) -> bool:
    equalities = [c for c in where_conjuncts(select) if isinstance(c, exp.EQ)]
    return any(subs in tables_of(c) and len(tables_of(c)) > 1 for c in equalities)


def _wrappable(select: exp.Select, alias: str) -> bool:
    return any(s.alias_or_name == alias and isinstance(s, exp.Table | exp.Subquery) for s in sources_of(select))


def _by_list(select: exp.Select, condition: exp.Expr, subs: str) -> bool:
    if not isinstance(condition, exp.ArrayContains) or condition.find(exp.Query) is not None:
        return False
    items, value = condition.this, condition.expression
    owner = tables_of(value)
    if tables_of(items) != {subs} or len(owner) != 1 or subs in owner:
        return False
    _explode(select, subs, f"ARRAY_DISTINCT({print_sql(items)})", "__item")
    add_where(select, exp.condition(f"`{subs}`.__item = {print_sql(value)}", dialect=DIALECT))
    return True


def _by_word(select: exp.Select, condition: exp.Expr, subs: str) -> bool:
    if our_function(condition) != "has_word" or condition.find(exp.Query) is not None:
        return False
    text, word = condition.expressions
    owner = tables_of(text)
    if tables_of(word) != {subs} or len(owner) != 1 or subs in owner:
        return False
    (alias,) = owner
    if not _wrappable(select, alias):
        return False
    _explode(select, alias, f"ARRAY_DISTINCT({print_sql(words_of(text))})", "__word")
    add_where(select, exp.condition(f"`{alias}`.__word = LOWER({print_sql(word)})", dialect=DIALECT))
    return True


def _explode(select: exp.Select, alias: str, items: str, name: str) -> None:
    wrap(select, alias, f"SELECT `{alias}`.*, {name} FROM __hole LATERAL VIEW EXPLODE({items}) v{name} AS {name}")
