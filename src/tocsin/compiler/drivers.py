"""What is new: which datasets drive a channel, and which view of its dataset each table reads.

- ``is_new(alias)``, a condition of WHERE joined by AND, says that the alias reads new records only.
- ``is_new(a) OR is_new(b)``, once, in a plain SELECT: a pair is new when either record is.
- Without any, the first ACTIVE dataset in FROM drives. The search goes into derived tables and WITH
  queries as it meets them. Every arm of a UNION finds its own; of EXCEPT and INTERSECT the left must.

Being new is a matter of one place in FROM: the same dataset named twice reads its new records at the
first and everything at the second, which is how new reports meet older ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.parse import Source
from tocsin.compiler.plan import Relation, View
from tocsin.compiler.trees import set_where, source_named, sources_of, where_conjuncts
from tocsin.errors import nearest
from tocsin.model.catalog import DatasetSpec

Catalog = Mapping[str, DatasetSpec]
VIEW, DATASET = "view", "dataset"  # keys of what a table node remembers


@dataclass(frozen=True, slots=True)
class Drivers:
    """The driving datasets in order of appearance; ``pair`` holds two aliases where either may be new."""

    datasets: tuple[str, ...]
    pair: tuple[str, str] | None


def hide_aliases(source: Source, tree: exp.Query) -> None:
    """Turn the alias in ``is_new(alias)`` into a text, for it is not a column to be resolved."""
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.lower() != "is_new":
            continue
        argument = node.expressions[0]
        if not isinstance(argument, exp.Column) or argument.table:
            raise source.invalid("is_new was given an expression", node, "the alias of a dataset in FROM")
        node.set("expressions", [exp.Literal.string(argument.name.lower())])


def find_drivers(source: Source, tree: exp.Query, catalog: Catalog) -> Drivers:
    """Mark every dataset table of the tree with its view, and take the ``is_new`` conditions out."""
    ctes = {cte.alias: cte.this for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name in catalog and table.name not in ctes:
            table.meta[DATASET], table.meta[VIEW] = table.name, View.NOW
    pair = _take_conditions(source, tree)
    if pair is None and not _drive(tree, catalog, ctes, source):
        raise source.invalid(
            "no dataset drives this channel", tree, "an ACTIVE dataset in FROM, or is_new(alias) in WHERE"
        )
    return Drivers(_driving(tree, pair), pair)


def relation_name(dataset: str, view: View) -> str:
    return f"tocsin_{dataset.lower()}_{view.value}"


def attach_relations(tree: exp.Expr, catalog: Catalog) -> set[Relation]:
    """Let every marked table read the relation of its view."""
    found = set()
    for table in tree.find_all(exp.Table):
        if (dataset := table.meta.get(DATASET)) is not None:
            relation = Relation(relation_name(dataset, table.meta[VIEW]), catalog[dataset].name, table.meta[VIEW])
            table.set("this", exp.to_identifier(relation.name))
            found.add(relation)
    return found


def is_new_table(node: exp.Expr) -> bool:
    return node.meta.get(VIEW) in (View.NEW, View.NEW_BEFORE)


def _take_conditions(source: Source, tree: exp.Query) -> tuple[str, str] | None:
    pair = None
    for select in tree.find_all(exp.Select):
        kept = []
        for condition in where_conjuncts(select):
            aliases = _aliases(condition)
            if aliases is None:
                kept.append(condition)
                continue
            for alias in aliases:
                _mark(source, select, alias, condition)
            if len(aliases) == 2:
                pair = _check_pair(source, tree, select, condition, aliases, pair)
        set_where(select, kept)
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "is_new":
            raise source.invalid(
                "is_new is in a place where it cannot be", node, "is_new(a), or is_new(a) OR is_new(b), joined by AND"
            )
    return pair


def _aliases(condition: exp.Expr) -> list[str] | None:
    """The aliases where a condition consists of ``is_new`` alone, or of two joined by OR."""
    parts = [condition.this.unnest(), condition.expression.unnest()] if isinstance(condition, exp.Or) else [condition]
    if all(isinstance(p, exp.Anonymous) and p.name.lower() == "is_new" for p in parts):
        return [p.expressions[0].name for p in parts]
    return None


def _mark(source: Source, select: exp.Select, alias: str, condition: exp.Expr) -> None:
    table = source_named(select, alias)
    if table is None or DATASET not in table.meta:
        known = [s.alias_or_name for s in sources_of(select) if DATASET in s.meta]
        raise source.invalid(
            f"is_new names {alias!r}, which is no dataset in this FROM{nearest(alias, known)}",
            condition,
            f"one of {', '.join(known)}" if known else None,
        )
    table.meta[VIEW] = View.NEW


def _check_pair(
    source: Source,
    tree: exp.Query,
    select: exp.Select,
    condition: exp.Expr,
    aliases: list[str],
    before: tuple[str, str] | None,
) -> tuple[str, str]:
    if before is not None or select is not tree or aliases[0] == aliases[1]:
        raise source.invalid(
            "is_new(a) OR is_new(b) is not possible here",
            condition,
            "it once, with two aliases, in the outermost WHERE",
        )
    return aliases[0], aliases[1]


def _drive(query: exp.Expr, catalog: Catalog, ctes: Mapping[str, exp.Query], source: Source) -> bool:
    """Make sure that the query has a driver; whether it has."""
    if _is_driven(query, ctes):
        _drive_arms(query, catalog, ctes, source)
        return True
    if isinstance(query, exp.SetOperation):
        return _drive_arms(query, catalog, ctes, source)
    if isinstance(query, exp.Subquery):
        return _drive(query.this, catalog, ctes, source)
    return isinstance(query, exp.Select) and any(_drive_by(s, catalog, ctes, source) for s in sources_of(query))


def _drive_by(node: exp.Expr, catalog: Catalog, ctes: Mapping[str, exp.Query], source: Source) -> bool:
    if isinstance(node, exp.Subquery):
        return _drive(node, catalog, ctes, source)
    if isinstance(node, exp.Table) and node.name in ctes:
        return _drive(ctes[node.name], catalog, ctes, source)
    if DATASET in node.meta and catalog[node.meta[DATASET]].active:
        node.meta[VIEW] = View.NEW
        return True
    return False


def _drive_arms(query: exp.Expr, catalog: Catalog, ctes: Mapping[str, exp.Query], source: Source) -> bool:
    if not isinstance(query, exp.SetOperation):
        return True
    left, right = (_drive(arm, catalog, ctes, source) for arm in (query.this, query.expression))
    if left and not right and isinstance(query, exp.Union):
        raise source.invalid(
            "no dataset drives this arm of UNION", query.expression, "an ACTIVE dataset in its FROM, or is_new(alias)"
        )
    return left


def _is_driven(query: exp.Expr, ctes: Mapping[str, exp.Query]) -> bool:
    if any(is_new_table(t) for t in query.find_all(exp.Table)):
        return True
    return any(_is_driven(ctes[t.name], ctes) for t in query.find_all(exp.Table) if t.name in ctes)


def _driving(tree: exp.Query, pair: tuple[str, str] | None) -> tuple[str, ...]:
    new = [t.meta[DATASET] for t in tree.find_all(exp.Table, bfs=False) if is_new_table(t)]
    return tuple(dict.fromkeys(new))
