"""Relations of a tick: the views that a channel's SQL reads, registered for one window.

A relation is named by dataset, view and window, so channels with the same window share it, and two
windows of one dataset can live in one job. What does not change is kept: a dataset that was not
written since the last tick is not sent to Spark again.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tocsin.compiler.plan import SEQUENCE, Relation, View
from tocsin.datacluster.storage.dataset import DatasetStore

_KEPT = 64  # registered views
_TEXT = r"'(?:[^'\\]|\\.)*'"


@dataclass(frozen=True, slots=True)
class Window:
    """Sequence numbers ``(after, through]`` of one dataset."""

    after: int
    through: int

    @property
    def is_empty(self) -> bool:
        return self.through <= self.after


class Relations:
    """Registers relations as temporary views and forgets the oldest."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._views: OrderedDict[str, None] = OrderedDict()

    def bind(self, sql: str, relations: tuple[Relation, ...], stores: Mapping[str, DatasetStore],
             windows: Mapping[str, Window]) -> str:  # fmt: skip
        """``sql`` with every relation's name replaced by a registered view for its window."""
        for relation in relations:
            store = stores[relation.dataset.lower()]
            window = windows.get(relation.dataset.lower()) or Window(store.head, store.head)
            sql = rename_sql(sql, relation.name, self._view(relation, store, window))
        return sql

    def _view(self, relation: Relation, store: DatasetStore, window: Window) -> str:
        version = f"{store.version}_{window.through}" if relation.view is View.NOW else (
            f"{store.version}_{window.after}_{window.through}")  # fmt: skip
        name = f"{relation.name}_{version}"
        with self._lock:
            if name in self._views:
                self._views.move_to_end(name)
                return name
        _frame(self._spark, relation.view, store, window).createOrReplaceTempView(name)
        with self._lock:
            self._views[name] = None
            stale = [self._views.popitem(last=False)[0] for _ in range(len(self._views) - _KEPT)]
        for old in stale:
            self._spark.catalog.dropTempView(old)
        return name


def rename_sql(sql: str, name: str, view: str) -> str:
    """Replace the identifier ``name``, wherever it stands outside a text literal."""
    pattern = rf"{_TEXT}|(?<![\w`]){re.escape(name)}(?!\w)|`{re.escape(name)}`"
    return re.sub(pattern, lambda found: found[0] if found[0].startswith("'") else view, sql)


def _frame(spark: SparkSession, view: View, store: DatasetStore, window: Window) -> DataFrame:
    if view is View.NOW and not store.spec.is_keyed:
        return dataset_frame(spark, store, window.through)
    return arrow_frame(spark, _table(view, store, window))


def _table(view: View, store: DatasetStore, window: Window) -> pa.Table:
    after, through = window.after, window.through
    match view:
        case View.NEW:
            return store.new(after, through)
        case View.NOW:
            return store.now(through)
        case View.OLD:
            return store.old(after, through)
        case View.NEW_BEFORE:
            return store.new_before(after, through)
        case View.NOW_BEFORE:
            return store.now_before(after, through)


def dataset_frame(spark: SparkSession, store: DatasetStore, through: int) -> DataFrame:
    """An appending dataset up to ``through``: its Parquet files and the tail that is not yet in one.

    What came after belongs to the next window; seen here already, it would be seen twice.
    """
    snapshot = store.snapshot()
    recent = snapshot.tail.filter(pc.less_equal(snapshot.tail.column(SEQUENCE), through))
    tail = arrow_frame(spark, recent)
    if not snapshot.parquet_paths:
        return tail
    stored = spark.read.schema(tail.schema).parquet(*[str(p) for p in snapshot.parquet_paths])
    return (
        stored.select(*tail.columns).where(f"{SEQUENCE} > {snapshot.floor} AND {SEQUENCE} <= {through}").unionAll(tail)
    )


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)
