"""Plain SELECT: read-only, over datasets and over a channel's results and subscriptions.

Bounded by rows and by time: a query that runs longer is cancelled on Spark, not only forgotten.
``<Channel>Results`` and ``<Channel>Subscriptions`` are tables made when a query names them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.compiler.select import compile_select
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.service import Answer
from tocsin.datacluster.spark.jobs import POOL
from tocsin.datacluster.spark.prepared import bound_sql, timestamp_sql
from tocsin.datacluster.spark.relations import Relations, arrow_frame, rename_sql
from tocsin.datacluster.storage import subscriptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore
from tocsin.errors import InvalidQuery, LimitExceeded, Span
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column
from tocsin.model.position import START
from tocsin.model.types import SqlType
from tocsin.units import counted

RESULTS, SUBSCRIPTIONS = "results", "subscriptions"
_TEXT, _NUMBER = SqlType("STRING"), SqlType("BIGINT")
_RESULT_COLUMNS = (Column("id", _TEXT), Column("position", _TEXT), Column("backend", _NUMBER), Column("result", _TEXT))
_SUBSCRIPTION_COLUMNS = (
    Column("id", _TEXT),
    Column("broker", _TEXT),
    Column("backend", _NUMBER),
    Column("arguments", _TEXT),
    Column("owner", _TEXT),
)
_MOST_PSEUDO_ROWS = 1_000_000


class Selecting:
    def __init__(
        self, spark: SparkSession, relations: Relations, ledger: Ledger, results: ResultStore, datasets: Datasets,
        channels: Channels, brokers: Brokers, max_rows: int, timeout_s: float,
    ) -> None:  # fmt: skip
        self._spark, self._relations, self._ledger, self._results = spark, relations, ledger, results
        self._datasets, self._channels, self._brokers = datasets, channels, brokers
        self._max_rows, self._timeout_s = max_rows, timeout_s

    def select(self, query: str, where: Span | None) -> Answer:
        pseudo = self._pseudo_tables()
        compiled = compile_select(
            query, self._datasets.specs(), {n: c for n, (c, _) in pseudo.items()}, query_start=where
        )
        sql = self._relations.bind(compiled.sql, compiled.relations, self._datasets, {})
        views = []
        try:
            is_cut = False
            for name, view in compiled.extras:
                unique = f"{view}_{uuid.uuid4().hex[:8]}"
                content = pseudo[name.lower()][1]()
                is_cut |= content.num_rows >= _MOST_PSEUDO_ROWS
                arrow_frame(self._spark, content).createOrReplaceTempView(unique)
                views.append(unique)
                sql = rename_sql(sql, view, unique)
            table = self._bounded(bound_sql(sql, timestamp_sql(time.time())))
        finally:
            for view in views:
                self._spark.catalog.dropTempView(view)
        is_truncated = is_cut or table.num_rows > self._max_rows
        rows = [tuple(_plain(v) for v in row.values()) for row in table.slice(0, self._max_rows).to_pylist()]
        return Answer("table", counted(len(rows), "row"), tuple(table.column_names), tuple(rows), is_truncated)

    def _bounded(self, sql: str) -> pa.Table:
        """Run ``sql`` in a job group of its own and cancel it at the time limit."""
        group, box = f"select-{uuid.uuid4().hex}", _Box()

        def work() -> None:
            try:
                self._spark.sparkContext.setJobGroup(group, "SELECT", interruptOnCancel=True)
                self._spark.sparkContext.setLocalProperty(POOL, "select")
                box.answer = self._spark.sql(sql).limit(self._max_rows + 1).toArrow()
            except Exception as problem:
                box.problem = problem

        thread = InheritableThread(target=work, daemon=True)
        thread.start()
        thread.join(self._timeout_s)
        if thread.is_alive():
            self._spark.sparkContext.cancelJobGroup(group)
            raise LimitExceeded("seconds a SELECT may run", self._timeout_s)
        if isinstance(box.problem, PySparkException):
            raise InvalidQuery(f"Spark refuses the query: {str(box.problem).splitlines()[0][:500]}") from box.problem
        if box.problem is not None:
            raise box.problem
        assert box.answer is not None
        return box.answer

    def _pseudo_tables(self) -> dict[str, tuple[tuple[Column, ...], Callable[[], pa.Table]]]:
        tables: dict[str, tuple[tuple[Column, ...], Callable[[], pa.Table]]] = {}
        for channel in self._channels.values():
            name = channel.spec.name.lower()
            tables[name + RESULTS] = (_RESULT_COLUMNS, lambda c=channel: self._results_table(c))  # type: ignore[misc]
            tables[name + SUBSCRIPTIONS] = (_SUBSCRIPTION_COLUMNS, lambda c=channel: self._subscriptions_table(c))  # type: ignore[misc]
        return tables

    def _results_table(self, channel: Channel) -> pa.Table:
        """Every result that is kept, up to a bound; the answer then says that it is truncated."""
        rows: list[tuple[Any, ...]] = []
        after, is_end = START, False
        while not is_end and len(rows) < _MOST_PSEUDO_ROWS:
            page = self._results.page(channel.id, after, lambda _, ids: np.ones(len(ids), bool), 1000, 2**24)
            for row in page.rows:
                text, position = row.payload.decode(), str(row.position)
                rows += [(f"{row.row_id}-{backend}", position, backend, text) for backend in row.backends]
            after, is_end = page.through, page.is_end
        return _table(_RESULT_COLUMNS, rows[:_MOST_PSEUDO_ROWS])

    def _subscriptions_table(self, channel: Channel) -> pa.Table:
        brokers = self._brokers.names()
        found = self._ledger.read(lambda tx: subscriptions.list_subscriptions(tx, channel.id, None, _MOST_PSEUDO_ROWS))
        rows = [(s.id, brokers.get(s.broker_id), s.backend_no, s.params_key, s.owner) for s in found]
        return _table(_SUBSCRIPTION_COLUMNS, rows)


def tables_of(channel: str) -> tuple[str, ...]:
    """Names that a channel takes from datasets, in lower case: its own, and its tables'."""
    name = channel.lower()
    return name, name + RESULTS, name + SUBSCRIPTIONS


def _table(columns: tuple[Column, ...], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [pa.array(v, arrow_type(c.type)) for c, v in zip(columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, names=[c.name for c in columns])


class _Box:
    """What a worker thread leaves behind."""

    answer: pa.Table | None = None
    problem: Exception | None = None


def _plain(value: Any) -> Any:
    """A JSON-ready form: times as ISO text, decimals and wide integers as text."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
