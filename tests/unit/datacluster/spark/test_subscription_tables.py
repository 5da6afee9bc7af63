"""A channel's subscriptions as tables, dropped while a run that could not be ended still makes them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tocsin.compiler.plan import JoinPlan, SubscriptionShape
from tocsin.datacluster.spark.jobs import Stopped
from tocsin.datacluster.spark.subscriptions import SubscriptionTables

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
    spark: Any = SimpleNamespace(createDataFrame=lambda _: frame, catalog=SimpleNamespace(dropTempView=views.discard))
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
    spark: Any = SimpleNamespace(createDataFrame=lambda _: frame, catalog=SimpleNamespace(dropTempView=views.discard))
    tables = SubscriptionTables(spark, PLAN)
    tables.register(1, lambda: NOBODY, NOBODY)
    assert (frame.is_cached, views) == (True, {"subs_mine"})
    tables.drop()
    assert (frame.is_cached, views) == (False, set())
