"""Plain read-only SELECT over datasets as they are now, and over named extra relations.

The same rules as for channels, without parameters and ``is_new``. Extra relations are, for example, a
channel's results and subscriptions; the caller provides a view for each one that is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.drivers import DATASET, VIEW, Catalog, attach_relations
from tocsin.compiler.functions import expand, print_sql
from tocsin.compiler.laterals import order_by_aliases
from tocsin.compiler.names import resolve
from tocsin.compiler.parse import DIALECT, Source, parse_query
from tocsin.compiler.plan import Relation, View
from tocsin.compiler.validate import check_no_is_new, validate
from tocsin.errors import Span
from tocsin.model.catalog import Column

_LONGEST_NAME = 100
_PLAIN = re.compile(r"[\w ()*+/%<>=,.-]+")


@dataclass(frozen=True, slots=True)
class CompiledSelect:
    """``sql`` reads the relations and, of the extra ones, ``extras`` as (name, view) pairs.

    ``{now}`` in the text stands for the time of the query, as in a channel's plans.
    """

    sql: str
    columns: tuple[str, ...]
    relations: tuple[Relation, ...]
    extras: tuple[tuple[str, str], ...]


def compile_select(
    sql: str,
    catalog: Catalog,
    extra_relations: Mapping[str, tuple[Column, ...]] | None = None,
    *,
    query_start: Span | None = None,
    max_query_chars: int = 20_000,
    max_depth: int = 50,
) -> CompiledSelect:
    """The query over views; ``extra_relations`` has columns by name, without regard to case."""
    extras = {name.lower(): columns for name, columns in (extra_relations or {}).items()}
    source = Source(sql, query_start or Span(1, 1))
    tree = parse_query(source, max_query_chars, max_depth)
    schema = {name: dataset.columns for name, dataset in catalog.items()} | extras
    written = {
        name.lower(): name for name in (*(dataset.name for dataset in catalog.values()), *(extra_relations or {}))
    }
    validate(source, tree, {}, written)
    check_no_is_new(source, tree)
    resolved, columns = resolve(source, tree, schema, {}, _spark_name)
    used = _attach_extras(resolved, extras)
    relations = _attach_datasets(resolved, catalog)
    for projection, name in zip(resolved.selects, columns, strict=True):
        projection.set("alias", exp.to_identifier(name, quoted=True))
    order_by_aliases(resolved)
    expand(resolved)
    return CompiledSelect(print_sql(resolved), columns, relations, used)


def extra_view(name: str) -> str:
    """The view that stands for an extra relation."""
    return f"tocsin_extra_{name.lower()}"


def _spark_name(expression: exp.Expr) -> str | None:
    """What Spark would call an output, as ``count(1)`` or ``sum((a + 1))``; ``None`` where that is no plain text."""

    def as_spark(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return exp.column(node.name)
        if isinstance(node, exp.Star):
            return exp.Literal.number(1)
        return exp.paren(node, copy=False) if isinstance(node, exp.Binary) and not is_in_parens(node) else node

    def is_in_parens(node: exp.Expr) -> bool:
        return isinstance(node.parent, exp.Paren)

    text = expression.transform(as_spark).sql(dialect=DIALECT, normalize_functions="lower", comments=False)
    return text if len(text) <= _LONGEST_NAME and _PLAIN.fullmatch(text) else None


def _attach_extras(tree: exp.Query, extras: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    used = {}
    for table in tree.find_all(exp.Table):
        if table.name in extras:
            used[table.name] = extra_view(table.name)
            table.set("this", exp.to_identifier(extra_view(table.name)))
    return tuple(sorted(used.items()))


def _attach_datasets(tree: exp.Query, catalog: Catalog) -> tuple[Relation, ...]:
    for table in tree.find_all(exp.Table):
        if table.name in catalog:
            table.meta[DATASET], table.meta[VIEW] = table.name, View.NOW
    return tuple(sorted(attach_relations(tree, catalog), key=lambda r: r.name))
