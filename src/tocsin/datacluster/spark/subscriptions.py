"""A channel's distinct parameter sets as Spark tables, for the join strategy.

Base and delta, like the index: the base is a cached table made at the last compaction, the delta a
small local one with what was added since; removed sets are dropped from the results by the driver.
Where the plan joins on cells, both are grouped in the driver into one array of structs a cell, which
is what made the join fast: a flat table took more than twice as long.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tocsin.compiler.plan import PARAMETER, Grid, JoinPlan, SubscriptionShape
from tocsin.datacluster.spark.jobs import Stopped
from tocsin.datacluster.spark.relations import arrow_frame
from tocsin.matching.grid import cover_planar, cover_sphere


class SubscriptionTables:
    """The subscription relation of one channel."""

    def __init__(self, spark: SparkSession, plan: JoinPlan) -> None:
        self._spark, self._plan = spark, plan
        self._lock = threading.Lock()
        self._base: DataFrame | None = None
        self._base_version = -1
        self._delta: pa.Table | None = None
        self._is_dropped = False

    def register(self, base_version: int, base: Callable[[], pa.Table], delta: pa.Table) -> None:
        """Make the view current; both are tables of ``__bs, p_...``, the base made when it is needed."""
        try:
            with self._lock:
                self._register(base_version, base, delta)
        finally:
            self._let_go()

    def _register(self, base_version: int, base: Callable[[], pa.Table], delta: pa.Table) -> None:
        is_new = self._base is None or self._base_version != base_version
        if not is_new and self._delta is not None and self._delta.equals(delta):
            return
        if is_new:
            self._replace_base(base())
            self._base_version = base_version
        assert self._base is not None
        extra = layout(self._plan, delta)
        whole = self._base.unionAll(arrow_frame(self._spark, extra)) if extra.num_rows else self._base
        if self._is_dropped:  # the name is the next query's by now
            raise Stopped("the channel was replaced or dropped")
        whole.createOrReplaceTempView(self._plan.subscriptions)
        self._delta = delta

    def drop(self) -> None:
        """For good. A ``register`` under way, of a run that could not be ended, is not waited for."""
        self._is_dropped = True
        self._spark.catalog.dropTempView(self._plan.subscriptions)
        self._let_go()

    def _let_go(self) -> None:
        """Drop the cached base once dropped: whoever has the lock meanwhile comes here after it."""
        if self._is_dropped and self._lock.acquire(blocking=False):
            try:
                if self._base is not None:
                    self._base.unpersist()
                self._base, self._delta = None, None
            finally:
                self._lock.release()

    def _replace_base(self, table: pa.Table) -> None:
        parallel = self._spark.sparkContext.defaultParallelism
        frame = arrow_frame(self._spark, in_parts(layout(self._plan, table), parallel)).cache()
        frame.count()
        if self._base is not None:
            self._base.unpersist()
        self._base = frame


def in_parts(table: pa.Table, count: int) -> pa.Table:
    """The same rows in ``count`` chunks with about as many subscriptions each: a chunk becomes a partition.

    Spark makes a partition of ten thousand rows. The cells of a million subscriptions are fewer, and one core
    joined them all.
    """
    if "subs" not in table.column_names or table.num_rows < count:
        return table
    before = np.cumsum(pc.list_value_length(table.column("subs")).to_numpy())
    cuts = 1 + np.searchsorted(before, np.arange(1, count) * before[-1] / count)
    bounds = [0, *cuts.tolist(), table.num_rows]
    return pa.concat_tables([table.slice(a, b - a) for a, b in itertools.pairwise(bounds)])


def layout(plan: JoinPlan, table: pa.Table) -> pa.Table:
    """``__bs, p_...`` rows in the shape that the plan's SQL reads."""
    if plan.shape is SubscriptionShape.FLAT:
        return table
    assert plan.grid is not None
    return grouped_by_cell(plan.grid, table)


def grouped_by_cell(grid: Grid, table: pa.Table) -> pa.Table:
    carried = table.column_names
    keys = [f"k_{p}" for p in grid.equal_params]
    needed = [grid.x_param, grid.y_param, *([grid.radius_param] if grid.radius_param else []), *grid.equal_params]
    complete = table.drop_null() if not needed else table.filter(_all_valid(table, needed))
    owner, cells = _cells(grid, complete)
    order, starts = _group(complete, grid, owner, cells)
    first = order[starts[:-1]]
    columns: dict[str, Any] = {
        key: complete.column(PARAMETER + p).take(pa.array(owner[first]))
        for key, p in zip(keys, grid.equal_params, strict=True)
    }
    columns |= {name: pa.array(values[first]) for name, values in cells.items()}
    members = complete.select(carried).take(pa.array(owner[order])).combine_chunks()
    structs = pa.StructArray.from_arrays(
        [_one(members.column(c)) for c in carried], fields=[members.schema.field(c) for c in carried]
    )
    columns["subs"] = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), structs)
    return pa.table(columns)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _all_valid(table: pa.Table, params: list[str]) -> Any:
    mask = pc.is_valid(table.column(PARAMETER + params[0]))
    for param in params[1:]:
        mask = pc.and_(mask, pc.is_valid(table.column(PARAMETER + param)))
    return mask


def _cells(grid: Grid, table: pa.Table) -> tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]:
    x = table.column(PARAMETER + grid.x_param).cast(pa.float64()).to_numpy()
    y = table.column(PARAMETER + grid.y_param).cast(pa.float64()).to_numpy()
    if grid.radius_param:
        radius = table.column(PARAMETER + grid.radius_param).cast(pa.float64()).to_numpy()
    else:
        radius = np.full(len(x), grid.radius_const, np.float64)
    cover = cover_sphere if grid.sphere else cover_planar
    owner, *cells = cover(x, y, radius, grid.cell)
    names = ["__level", "__cx", "__cy", "__cz"][: len(cells)]
    return owner, dict(zip(names, (np.asarray(c, np.int64) for c in cells), strict=True))


def _group(
    table: pa.Table, grid: Grid, owner: np.ndarray[Any, Any], cells: dict[str, np.ndarray[Any, Any]]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Order of the (owner, cell) rows by key, and where each group starts (with the end last)."""
    codes = [
        np.asarray(_one(table.column(PARAMETER + p)).dictionary_encode().indices)[owner] for p in grid.equal_params
    ]
    keys = [*codes, *cells.values()]
    order = np.lexsort(keys)
    changed = np.zeros(len(order), bool)
    for key in keys:
        ordered = key[order]
        changed[1:] |= ordered[1:] != ordered[:-1]
    if len(order):
        changed[0] = True
    return order, np.append(np.flatnonzero(changed), len(order))
