"""Compiling a channel: parse, validate, resolve, find the drivers, then write its plans.

::

    text ─parse─► tree ─validate─► ─resolve─► ─drivers─► marked tree ─┬─► join plan (always)
                                                                      └─► index plan (where possible)

Each plan starts from a copy of the marked tree. The join plan is the general one and defines what the
channel means; the index plan must give the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.compiler.drivers import Drivers, attach_relations, find_drivers, hide_aliases
from tocsin.compiler.index import NotIndexable
from tocsin.compiler.indexplan import index_plan
from tocsin.compiler.joinplan import join_plan
from tocsin.compiler.names import resolve
from tocsin.compiler.parse import Source, parse_query
from tocsin.compiler.plan import CompiledChannel, IndexPlan
from tocsin.compiler.problem import Problem
from tocsin.compiler.spatial import check_constants, radius_parameters
from tocsin.compiler.validate import validate
from tocsin.errors import InvalidQuery, Span
from tocsin.model.catalog import ChannelSpec, DatasetSpec


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Settings of the compiler: the grid's base cell and greatest radius, in the unit of the data."""

    cell: float = 500.0
    max_radius: float = 50_000.0
    index: bool = True
    query_start: Span | None = None  # where the query's text begins in the user's script
    max_query_chars: int = 20_000
    max_depth: int = 50


def compile_channel(
    spec: ChannelSpec, catalog: Mapping[str, DatasetSpec], options: CompileOptions | None = None
) -> CompiledChannel:
    """The plans of a channel; ``catalog`` has the datasets by lower-case name."""
    options = options or CompileOptions()
    try:
        return _compiled(spec, catalog, options)
    except RecursionError:
        raise InvalidQuery("the query is nested too deeply", options.query_start, expected="fewer levels") from None


def _compiled(spec: ChannelSpec, catalog: Mapping[str, DatasetSpec], options: CompileOptions) -> CompiledChannel:
    problem, drivers = _understood(spec, catalog, options)
    join = join_plan(problem.copy(), drivers)
    relations = attach_relations(join.tree, catalog)
    index, why = _index(problem, drivers, options)
    return CompiledChannel(
        name=spec.name,
        columns=problem.columns,
        drivers=tuple(catalog[d].name for d in drivers.datasets),
        datasets=frozenset(relation.dataset for relation in relations),
        relations=tuple(sorted(relations, key=lambda r: r.name)),
        join=join.plan(),
        index=index,
        why=why,
        radius_params=radius_parameters(problem.tree),
    )


def _understood(
    spec: ChannelSpec, catalog: Mapping[str, DatasetSpec], options: CompileOptions
) -> tuple[Problem, Drivers]:
    source = Source(spec.query, options.query_start or Span(1, 1))
    parameters = {p.name: p.type for p in spec.parameters}
    tree = parse_query(source, options.max_query_chars, options.max_depth)
    validate(source, tree, parameters, {name: dataset.name for name, dataset in catalog.items()})
    hide_aliases(source, tree)
    schema = {name: dataset.columns for name, dataset in catalog.items()}
    resolved, columns = resolve(source, tree, schema, parameters)
    drivers = find_drivers(source, resolved, catalog)
    check_constants(source, resolved, options.max_radius)
    problem = Problem(source, spec.name, resolved, columns, catalog, parameters, options.cell, options.max_radius)
    return problem, drivers


def _index(problem: Problem, drivers: Drivers, options: CompileOptions) -> tuple[IndexPlan | None, str]:
    if not options.index:
        return None, "join, because the index is switched off"
    try:
        if drivers.pair is not None:
            raise NotIndexable("either of two datasets may be new")
        return index_plan(problem.copy())
    except NotIndexable as reason:
        return None, f"join, because {reason}"
