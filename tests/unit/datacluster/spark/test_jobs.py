"""Ending the jobs of channels, seen from those who ask for it; Spark itself is played by an object that hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from support.waiting import until
from tocsin.datacluster.spark.jobs import Jobs, Stopped

WAIT_S = 10.0


class SilentSpark:
    """Takes job groups, and does not answer a cancel before ``answers`` is set."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.asked, self.answers = threading.Event(), threading.Event()
        self.sparkContext = SimpleNamespace(
            setJobGroup=lambda *_, **__: None, setLocalProperty=lambda *_: None, cancelJobGroup=self._cancel
        )

    def _cancel(self, group: str) -> None:
        self.cancelled.append(group)
        self.asked.set()
        self.answers.wait(WAIT_S)


@pytest.fixture
def spark() -> SilentSpark:
    return SilentSpark()


@pytest.fixture
def jobs(spark: SilentSpark) -> Iterator[Jobs]:
    stand_in: Any = spark
    jobs = Jobs(stand_in, limit_s=60.0)
    jobs.start()
    yield jobs
    spark.answers.set()
    jobs.close()


def evaluating(jobs: Jobs, channel: str, over: threading.Event, ended: list[object]) -> threading.Thread:
    def work() -> None:
        assert over.wait(WAIT_S)
        raise RuntimeError("cancelled")

    def run() -> None:
        try:
            jobs.run([channel], work)
        except Exception as problem:
            ended.append(problem)

    thread = threading.Thread(target=run, name="tick_0", daemon=True)
    thread.start()
    return thread


def test_a_cancel_that_spark_does_not_answer_keeps_nobody_waiting(jobs: Jobs, spark: SilentSpark) -> None:
    over = threading.Event()
    evaluating(jobs, "Slow", over, [])
    until(lambda: jobs._runs, "the run began")
    jobs.bar("Slow", "the channel is paused")
    assert spark.asked.wait(WAIT_S)
    others = threading.Thread(target=lambda: (jobs.bar("Other", "paused"), jobs.allow("Other")), daemon=True)
    others.start()
    others.join(WAIT_S)
    assert not others.is_alive()
    over.set()


def test_a_threads_next_run_begins_when_the_cancel_of_its_last_is_over(jobs: Jobs, spark: SilentSpark) -> None:
    over, ended = threading.Event(), list[object]()
    thread = evaluating(jobs, "Slow", over, ended)
    until(lambda: jobs._runs, "the run began")
    jobs.bar("Slow", "the channel is paused")
    assert spark.asked.wait(WAIT_S)
    over.set()
    until(lambda: not jobs._runs, "the run's work ended")
    assert thread.is_alive()
    assert not ended
    spark.answers.set()
    thread.join(WAIT_S)
    assert isinstance(ended[0], Stopped)
    assert len(spark.cancelled) == 1
