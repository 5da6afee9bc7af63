"""Plain SELECT: read-only, over datasets and over a channel's results and subscriptions.

Bounded by rows, bytes and time: a query that runs longer, or that nobody waits for any more, is cancelled on
Spark, not only forgotten.
``<Channel>Results`` and ``<Channel>Subscriptions`` are tables made when a query names them; of
subscriptions one sees those that one may see elsewhere.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from tocsin.compiler.select import compile_select
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.json_rows import json_rows, rows_within
from tocsin.datacluster.result_table import COLUMNS, TableBounds, as_table, results_table
from tocsin.datacluster.service import Answer
from tocsin.datacluster.spark.jobs import POOL
from tocsin.datacluster.spark.prepared import bound_sql, timestamp_sql
from tocsin.datacluster.spark.reasons import reason
from tocsin.datacluster.spark.relations import Binding, Relations, arrow_frame, rename_sql
from tocsin.datacluster.spark.session import SPARK_IS_GONE, spark_answers
from tocsin.datacluster.storage import subscriptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore
from tocsin.datacluster.subscribing import viewer
from tocsin.errors import InvalidQuery, LimitExceeded, Span, TocsinError, Unavailable
from tocsin.model.catalog import Column
from tocsin.model.types import SqlType
from tocsin.tokens import Principal
from tocsin.units import counted

RESULTS, SUBSCRIPTIONS = "results", "subscriptions"
_TEXT, _NUMBER = SqlType("STRING"), SqlType("BIGINT")
_SUBSCRIPTION_COLUMNS = (
    Column("id", _TEXT),
    Column("broker", _TEXT),
    Column("backend", _NUMBER),
    Column("arguments", _TEXT),
    Column("owner", _TEXT),
)
_MOST_PSEUDO_ROWS = 1_000_000
_CANCELS, _CANCEL_PAUSE_S = 20, 0.5
_LOOK_S = 0.25  # how often a query that runs asks whether it should go on


PseudoTable = tuple[tuple[Column, ...], Callable[[], tuple[pa.Table, bool]]]
"""Columns, and what makes the content and tells whether it was cut."""


@dataclass(frozen=True, slots=True)
class SelectLimits:
    max_rows: int
    max_bytes: int
    timeout_s: float
    results_max_bytes: int


class Selecting:
    def __init__(
        self, spark: SparkSession, relations: Relations, ledger: Ledger, results: ResultStore, datasets: Datasets,
        channels: Channels, brokers: Brokers, limits: SelectLimits,
    ) -> None:  # fmt: skip
        self._spark, self._relations, self._ledger, self._results = spark, relations, ledger, results
        self._datasets, self._channels, self._brokers = datasets, channels, brokers
        self._limits = limits

    def select(self, query: str, where: Span | None, who: Principal, go_on: Callable[[], None]) -> Answer:
        with self._relations.binding() as binding:
            return self._select(binding, query, where, who, go_on)

    def _select(
        self, binding: Binding, query: str, where: Span | None, who: Principal, go_on: Callable[[], None]
    ) -> Answer:
        limits = self._limits
        deadline = time.monotonic() + limits.timeout_s
        bounds = TableBounds(_MOST_PSEUDO_ROWS, limits.results_max_bytes, limits.timeout_s, deadline)
        pseudo = self._pseudo_tables(viewer(who, self._brokers), bounds)
        compiled = compile_select(
            query, self._datasets.specs(), {n: c for n, (c, _) in pseudo.items()}, query_start=where
        )
        sql = binding.sql(compiled.sql, compiled.relations, self._datasets, {})
        views = []
        try:
            is_cut = False
            for name, view in compiled.extras:
                unique = f"{view}_{uuid.uuid4().hex[:8]}"
                content, is_part = pseudo[name.lower()][1]()
                is_cut |= is_part
                arrow_frame(self._spark, content).createOrReplaceTempView(unique)
                views.append(unique)
                sql = rename_sql(sql, view, unique)
            table = self._bounded(bound_sql(sql, timestamp_sql(time.time())), deadline, go_on)
        finally:
            for view in views:
                self._spark.catalog.dropTempView(view)
        count = self._fitting(table)
        rows = json_rows(table.slice(0, count))
        is_truncated = is_cut or count < table.num_rows
        return Answer("table", counted(len(rows), "row"), tuple(table.column_names), tuple(rows), is_truncated)

    def _fitting(self, table: pa.Table) -> int:
        """How many rows are given; the first one must fit."""
        count = rows_within(table.slice(0, self._limits.max_rows), self._limits.max_bytes)
        if count == 0 < table.num_rows:
            raise LimitExceeded("bytes in a row of a SELECT", self._limits.max_bytes, table.slice(0, 1).nbytes)
        return count

    def _bounded(self, sql: str, deadline: float, go_on: Callable[[], None]) -> pa.Table:
        """Run ``sql`` in a job group of its own; cancel it at the deadline, or when ``go_on`` raises."""
        group, box = f"select-{uuid.uuid4().hex}", _Box()

        def work() -> None:
            try:
                self._spark.sparkContext.setJobGroup(group, "SELECT", interruptOnCancel=True)
                self._spark.sparkContext.setLocalProperty(POOL, "select")
                box.answer = self._spark.sql(sql).limit(self._limits.max_rows + 1).toArrow()
            except Exception as problem:
                box.problem = problem

        thread = InheritableThread(target=work, name="select", daemon=True)
        thread.start()
        try:
            self._await(thread, deadline, go_on)
        finally:
            self._cancel(group, thread)
        if box.problem is not None:
            raise _refusal(box.problem) from box.problem
        assert box.answer is not None
        return box.answer

    def _await(self, thread: threading.Thread, deadline: float, go_on: Callable[[], None]) -> None:
        while thread.is_alive():
            go_on()
            if time.monotonic() >= deadline:
                raise LimitExceeded("seconds a SELECT may run", self._limits.timeout_s)
            thread.join(max(0.0, min(_LOOK_S, deadline - time.monotonic())))

    def _cancel(self, group: str, thread: threading.Thread) -> None:
        """Again and again, since one that comes between two jobs meets none; its place is not free before."""
        for _ in range(_CANCELS):
            if not thread.is_alive():
                return
            with suppress(Py4JError, OSError):
                self._spark.sparkContext.cancelJobGroup(group)
            thread.join(_CANCEL_PAUSE_S)

    def _pseudo_tables(self, seen_by: subscriptions.Viewer | None, bounds: TableBounds) -> dict[str, PseudoTable]:
        tables: dict[str, PseudoTable] = {}
        for channel in self._channels.values():
            name = channel.spec.name.lower()
            held = partial(self._subscriptions_table, channel, seen_by)
            tables[name + RESULTS] = (COLUMNS, partial(results_table, self._results, channel.id, bounds))
            tables[name + SUBSCRIPTIONS] = (_SUBSCRIPTION_COLUMNS, held)
        return tables

    def _subscriptions_table(self, channel: Channel, seen_by: subscriptions.Viewer | None) -> tuple[pa.Table, bool]:
        brokers = self._brokers.names()
        found = self._ledger.read(
            lambda tx: subscriptions.list_subscriptions(tx, channel.id, None, _MOST_PSEUDO_ROWS, "", seen_by)
        )
        rows = [(s.id, brokers.get(s.broker_id), s.backend_no, s.params_key, s.owner) for s in found]
        return as_table(_SUBSCRIPTION_COLUMNS, rows), len(rows) >= _MOST_PSEUDO_ROWS


def tables_of(channel: str) -> tuple[str, ...]:
    """Names that a channel takes from datasets, in lower case: its own, and its tables'."""
    name = channel.lower()
    return name, name + RESULTS, name + SUBSCRIPTIONS


class _Box:
    """What a worker thread leaves behind."""

    answer: pa.Table | None = None
    problem: Exception | None = None


def _refusal(problem: Exception) -> TocsinError:
    """What the asker is told: of the query, or that Spark is not there."""
    if not spark_answers():
        return Unavailable(SPARK_IS_GONE)
    return InvalidQuery(f"Spark refuses the query: {reason(problem)}")
