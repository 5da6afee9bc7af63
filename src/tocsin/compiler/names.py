"""Every column finds its source, every ``*`` its columns, every output its name.

sqlglot's optimizer does the work on lower-case names (Spark ignores case); this module prepares the
tree, checks that nothing is left unresolved, and remembers how the user and the datasets spell names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify

from tocsin.compiler.parse import DIALECT, Source
from tocsin.compiler.plan import BEFORE, ORDINAL, SEQUENCE, SUBSCRIPTION
from tocsin.compiler.trees import sources_of
from tocsin.errors import InvalidQuery, nearest
from tocsin.model.catalog import Column
from tocsin.model.types import SqlType

_RESERVED = {SUBSCRIPTION, SEQUENCE, ORDINAL}
_NAMED = re.compile(r"(?:Unknown column|Ambiguous column|Column|Cannot automatically join|Cannot resolve):? '?(\w+)'?")

Schema = Mapping[str, tuple[Column, ...]]
Unnamed = Callable[[exp.Expr], str | None]


def resolve(
    source: Source, tree: exp.Query, schema: Schema, parameters: Mapping[str, SqlType], unnamed: Unnamed | None = None
) -> tuple[exp.Query, tuple[str, ...]]:
    """The tree with qualified columns, and the names of its outputs as the user would spell them.

    An output without a name gets that of its place, or what ``unnamed`` calls it.
    """
    _expand_lists(source, tree, parameters)
    _name_outputs(tree, unnamed or (lambda _: None))
    spelling = _spelling(tree, schema)
    known: dict[str, object] = {
        name: {c.name.lower(): str(c.type) for c in columns} for name, columns in schema.items()
    }
    try:
        resolved = qualify(tree, dialect=DIALECT, schema=known, validate_qualify_columns=False, quote_identifiers=False)
    except OptimizeError as error:
        raise _unresolved(source, tree, schema, str(error)) from None
    _check_columns(source, resolved, schema)
    return resolved, _outputs(source, resolved, spelling)


def _expand_lists(source: Source, tree: exp.Query, parameters: Mapping[str, SqlType]) -> None:
    """``x IN (:list)`` is ``array_contains(:list, x)`` where the parameter is an array."""
    for node in list(tree.find_all(exp.In)):
        items = node.expressions
        arrays = [i for i in items if isinstance(i, exp.Placeholder) and parameters[i.name].is_array]
        if not arrays:
            continue
        if len(items) != 1:
            raise source.invalid("IN mixes a list parameter with other values", node, "x IN (:list) alone")
        node.replace(exp.ArrayContains(this=items[0].copy(), expression=node.this.copy()))


def selects(query: exp.Query) -> list[exp.Expr]:
    """The output expressions of a query; those of the first arm where it is a set operation."""
    return list(query.selects)


def first_select(query: exp.Expr) -> exp.Select:
    """The SELECT whose list names the outputs."""
    while not isinstance(query, exp.Select):
        query = query.this
    return query


def _spelling(tree: exp.Query, schema: Schema) -> dict[str, str]:
    spelling = {c.name.lower(): c.name for columns in schema.values() for c in columns}
    for projection in selects(tree):
        if isinstance(projection, exp.Alias):
            spelling[projection.alias.lower()] = projection.alias
    return spelling


def _name_outputs(tree: exp.Query, unnamed: Unnamed) -> None:
    select = first_select(tree)
    taken = {projection.output_name.lower() for projection in select.expressions}
    for number, projection in enumerate(select.expressions, 1):
        if not projection.output_name and not projection.is_star:
            name = unnamed(projection)
            chosen = name if name and name.lower() not in taken else f"column_{number}"
            taken.add(chosen.lower())
            projection.replace(exp.alias_(projection.copy(), chosen, quoted=True))


def _outputs(source: Source, tree: exp.Query, spelling: Mapping[str, str]) -> tuple[str, ...]:
    names = [projection.alias_or_name for projection in selects(tree)]
    for name, times in Counter(name.lower() for name in names).items():
        if times > 1:
            raise source.invalid(f"{times} output columns are called {name!r}", expected="AS with different names")
        if name in _RESERVED or name.startswith(BEFORE):
            raise source.invalid(f"the output name {name!r} is reserved")
    return tuple(spelling.get(name.lower(), name) for name in names)


def _check_columns(source: Source, tree: exp.Query, schema: Schema) -> None:
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            raise source.invalid("this * cannot be expanded", column)
        if column.table:
            if column.table not in _visible(column):
                raise source.invalid(
                    f"there is no {column.table!r} in FROM{nearest(column.table, _visible(column))}", column
                )
        elif not _is_output_reference(column):
            raise _unresolved(source, tree, schema, f"Column '{column.name}'")


def _visible(node: exp.Expr) -> set[str]:
    """The aliases that an expression may name: those of every SELECT around it."""
    found: set[str] = set()
    select = node.find_ancestor(exp.Select)
    while select is not None:
        found |= {s.alias_or_name for s in sources_of(select)}
        select = select.find_ancestor(exp.Select)
    return found


def _is_output_reference(column: exp.Column) -> bool:
    """ORDER BY and HAVING may name an output."""
    clause = column.find_ancestor(exp.Order, exp.Having, exp.Select)
    if not isinstance(clause, exp.Order | exp.Having):
        return False
    query = clause.parent
    return isinstance(query, exp.Query) and column.name in {s.alias_or_name for s in query.selects}


def _unresolved(source: Source, tree: exp.Query, schema: Schema, message: str) -> InvalidQuery:
    found = _NAMED.search(message)
    if not found:
        return source.invalid(message.split("\n")[0])
    name = found[1]
    node = next((c for c in tree.find_all(exp.Column) if c.name.lower() == name.lower()), None)
    tables = {t.name.lower() for t in tree.find_all(exp.Table)} & set(schema)
    owners = sorted(t for t in tables if any(c.name.lower() == name.lower() for c in schema[t]))
    if len(owners) > 1 or "mbiguous" in message:
        return source.invalid(f"column {name!r} is ambiguous", node, "the alias of its dataset before it")
    known = {c.name for t in tables for c in schema[t]}
    return source.invalid(f"there is no column {name!r}{nearest(name, known)}", node)
