"""Delays from a record to its result."""

from __future__ import annotations

from tocsin.clock import VirtualClock
from tocsin.datacluster.arrivals import Arrivals
from tocsin.datacluster.spark.relations import Window


def test_a_batch_is_measured_by_the_execution_that_saw_its_last_record() -> None:
    clock, measured = VirtualClock(0.0), list[tuple[str, float]]()
    arrivals = Arrivals(clock, lambda channel, seconds: measured.append((channel, seconds)))
    for head in (10, 20, 30):
        arrivals.came("Reports", head)
        clock.advance(1.0)
    arrivals.seen("Near", {"reports": Window(10, 25)})
    assert measured == [("Near", 2.0)]
    arrivals.seen("ByKind", {"reports": Window(25, 30), "others": Window(0, 5)})
    assert measured == [("Near", 2.0), ("ByKind", 1.0)]


def test_of_a_dataset_that_is_gone_nothing_is_measured() -> None:
    measured: list[float] = []
    arrivals = Arrivals(VirtualClock(0.0), lambda channel, seconds: measured.append(seconds))
    arrivals.came("reports", 1)
    arrivals.forget("Reports")
    arrivals.seen("Near", {"reports": Window(0, 1)})
    assert measured == []
