"""Relations of a tick: the views that a channel's SQL reads, registered for one window.

A relation is named by dataset, view and window, so channels with the same window share it, and two
windows of one dataset can live in one job. What does not change is kept: a dataset that was not
written since the last tick, and lost nothing to retention, is not sent to Spark again.
"""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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


class Binding:
    """Puts registered views into SQL; they stay registered until the binding ends, so analyse the SQL within it."""

    def __init__(self, pin: Callable[[Relation, DatasetStore, Window], str]) -> None:
        self._pin = pin

    def sql(self, sql: str, relations: tuple[Relation, ...], stores: Mapping[str, DatasetStore],
            windows: Mapping[str, Window]) -> str:  # fmt: skip
        """``sql`` with every relation's name replaced by a registered view for its window."""
        for relation in relations:
            store = stores[relation.dataset.lower()]
            window = windows.get(relation.dataset.lower()) or Window(store.head, store.head)
            sql = rename_sql(sql, relation.name, self._pin(relation, store, window))
        return sql


class Relations:
    """Registers relations as temporary views and forgets the oldest that no binding holds."""

    def __init__(self, spark: SparkSession, kept: int = _KEPT) -> None:
        self._spark, self._kept = spark, kept
        self._lock = threading.Lock()
        self._views: OrderedDict[str, None] = OrderedDict()
        self._pins: Counter[str] = Counter()

    @contextmanager
    def binding(self) -> Iterator[Binding]:
        pinned: list[str] = []
        try:
            yield Binding(lambda relation, store, window: self._pinned(relation, store, window, pinned))
        finally:
            with self._lock:
                self._pins -= Counter(pinned)
                self._forget_oldest()

    def _pinned(self, relation: Relation, store: DatasetStore, window: Window, pinned: list[str]) -> str:
        name = _view_name(relation, store, window)
        with self._lock:
            self._pins[name] += 1
            pinned.append(name)
            if name in self._views:
                self._views.move_to_end(name)
                return name
        frame = _frame(self._spark, relation.view, store, window)
        with self._lock:
            frame.createOrReplaceTempView(name)
            self._views[name] = None
            self._forget_oldest()
        return name

    def _forget_oldest(self) -> None:
        """Under the lock, so that no view is dropped which another thread has just registered again."""
        loose = [name for name in self._views if not self._pins[name]] if len(self._views) > self._kept else []
        for name in loose[: len(self._views) - self._kept]:
            del self._views[name]
            self._spark.catalog.dropTempView(name)


def _view_name(relation: Relation, store: DatasetStore, window: Window) -> str:
    """Whatever changes what the view shows is in its name, retention (the floor) too."""
    after = "" if relation.view is View.NOW else f"{window.after}_"
    return f"{relation.name}_{store.version}_{store.floor}_{after}{window.through}"


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
