"""Ending the jobs of channels, seen from those who ask for it; Spark itself is played by an object that hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from support.waiting import until
from tocsin.datacluster.spark.jobs import Jobs, OverLimit, Stopped

WAIT_S = 10.0


class SilentSpark:
    """Takes job groups, and does not answer a cancel before ``answers`` is set."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.asked, self.answers = threading.Event(), threading.Event()
        self.sparkContext = SimpleNamespace(
            setJobGroup=lambda *_, **__: None, setLocalProperty=lambda *_: None, cancelJobGroup=self._cancel,
            statusTracker=self._tracker,
        )  # fmt: skip
        self.groups: dict[str, int] = {}  # job group → its one active job
        self.tasks: dict[int, int] = {}  # job → tasks that have a place

    def _tracker(self) -> Any:
        return SimpleNamespace(
            getActiveJobsIds=lambda: list(self.tasks),
            getJobIdsForGroup=lambda group: [self.groups[group]] if group in self.groups else [],
            getJobInfo=lambda job: SimpleNamespace(stageIds=[job]),
            getStageInfo=lambda stage: SimpleNamespace(numActiveTasks=self.tasks[stage]),
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
    jobs = Jobs(stand_in, limit_s=60.0, yield_after_s=60.0, end_wait_s=0.5)
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


@pytest.fixture
def impatient(spark: SilentSpark) -> Iterator[Jobs]:
    """Others wait a moment only; a cancel is answered at once."""
    stand_in: Any = spark
    jobs = Jobs(stand_in, limit_s=60.0, yield_after_s=0.1, end_wait_s=0.5)
    spark.answers.set()
    spark.groups = {f"tick_0-{jobs._serial}": 1}
    jobs.start()
    yield jobs
    jobs.close()


def test_a_run_yields_to_a_job_that_gets_no_task(impatient: Jobs, spark: SilentSpark) -> None:
    over, ended = threading.Event(), list[object]()
    spark.tasks = {1: 2, 7: 0}
    evaluating(impatient, "Slow", over, ended)
    assert spark.asked.wait(WAIT_S)
    assert impatient.waited_for == {"Slow"}
    over.set()
    until(lambda: ended, "the run ended")
    assert isinstance(ended[0], OverLimit)
    assert str(ended[0]) == "took longer than 100ms while others waited (channels.yield_after) and was cancelled"


def test_a_run_yields_to_one_that_waits_for_a_thread(impatient: Jobs, spark: SilentSpark) -> None:
    over = threading.Event()
    spark.tasks = {1: 2}
    impatient.queued_since = lambda: 0.0
    evaluating(impatient, "Slow", over, [])
    assert spark.asked.wait(WAIT_S)
    over.set()


@pytest.mark.parametrize(("mine", "other"), [(1, 1), (0, 0), (0, 1)], ids=["both run", "both wait", "it waits itself"])
def test_a_run_goes_on_where_it_keeps_nobody_waiting(
    impatient: Jobs, spark: SilentSpark, mine: int, other: int
) -> None:
    over, ended = threading.Event(), list[object]()
    spark.tasks = {1: mine, 7: other}
    evaluating(impatient, "Slow", over, ended)
    until(lambda: impatient._runs, "the run began")
    assert not spark.asked.wait(0.5)
    over.set()
    until(lambda: ended, "the run ended")
    assert isinstance(ended[0], RuntimeError)


def test_each_time_a_channel_yields_its_next_run_may_hold_others_for_twice_as_long(impatient: Jobs) -> None:
    held = []
    for _ in range(5):
        with impatient._registered(["Slow"]) as run:
            held.append(run.may_hold_s)
            impatient._yields["Slow"] += 1
    assert held == pytest.approx([0.1, 0.2, 0.4, 0.8, 0.8])
    impatient.run(["Slow"], lambda: None)
    with impatient._registered(["Slow"]) as run:
        assert run.may_hold_s == pytest.approx(0.1)
