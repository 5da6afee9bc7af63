"""A channel's subscriptions as tables, dropped while a run that could not be ended still makes them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tocsin.compiler.plan import JoinPlan, SubscriptionShape
from tocsin.datacluster.spark.jobs import Stopped
from tocsin.datacluster.spark.subscriptions import SubscriptionTables, in_parts

PLAN = JoinPlan("", "subs_mine", SubscriptionShape.FLAT, None, is_lateral=False)
NOBODY = pa.table({"__bs": pa.array([], pa.int32())})


class Frame:
    """A frame whose count answers when ``is_counted`` is set."""

    def __init__(self, views: set[str]) -> None:
        self.is_counting, self.is_counted, self.is_cached, self._views = (
            threading.Event(),
            threading.Event(),
            False,
            views,
        )

    def cache(self) -> Frame:
        self.is_cached = True
        return self

    def count(self) -> int:
        self.is_counting.set()
        assert self.is_counted.wait(60.0)
        return 0

    def unpersist(self) -> None:
        self.is_cached = False

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802
        self._views.add(name)


def test_dropping_waits_for_nobody_and_leaves_nothing() -> None:
    views: set[str] = set()
    frame = Frame(views)
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(defaultParallelism=2),
        createDataFrame=lambda _: frame,
        catalog=SimpleNamespace(dropTempView=views.discard),
    )
    tables, ended = SubscriptionTables(spark, PLAN), list[object]()

    def register() -> None:
        with pytest.raises(Stopped):
            tables.register(1, lambda: NOBODY, NOBODY)
        ended.append("stopped")

    running = threading.Thread(target=register, daemon=True)
    running.start()
    assert frame.is_counting.wait(60.0)
    dropping = threading.Thread(target=tables.drop, daemon=True)
    dropping.start()
    dropping.join(60.0)
    assert not dropping.is_alive()
    frame.is_counted.set()
    running.join(60.0)
    assert (ended, frame.is_cached, views) == (["stopped"], False, set())


def test_a_registered_table_is_gone_after_a_drop() -> None:
    views: set[str] = set()
    frame = Frame(views)
    frame.is_counted.set()
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(defaultParallelism=2),
        createDataFrame=lambda _: frame,
        catalog=SimpleNamespace(dropTempView=views.discard),
    )
    tables = SubscriptionTables(spark, PLAN)
    tables.register(1, lambda: NOBODY, NOBODY)
    assert (frame.is_cached, views) == (True, {"subs_mine"})
    tables.drop()
    assert (frame.is_cached, views) == (False, set())


def test_the_cells_of_many_subscriptions_are_parts_of_about_equal_work() -> None:
    sizes = [1, 1, 50, 3, 45, 100, 2, 2, 96]
    table = pa.table({"__cx": range(9), "subs": [[{"__bs": n}] * size for n, size in enumerate(sizes)]})
    parts = in_parts(table, 3)
    work = [sum(sizes[n] for n in chunk.to_pylist()) for chunk in parts.column("__cx").chunks]
    assert parts.equals(table)
    assert work == [100, 100, 100]


@pytest.mark.parametrize("sizes", [[], [5], [900, 1, 1, 1]])
def test_few_or_uneven_cells_lose_nothing_in_parts(sizes: list[int]) -> None:
    table = pa.table({"subs": pa.array([list(range(size)) for size in sizes], pa.list_(pa.int64()))})
    assert in_parts(table, 3).equals(table)
