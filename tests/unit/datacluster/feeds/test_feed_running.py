from __future__ import annotations

import logging
import queue
import threading

import pytest

from tocsin.datacluster.feeds.batches import Delivered
from tocsin.datacluster.feeds.running import FeedState, FeedStatus, OnBatch, RunningFeed


class Scripted:
    """A query that ends when told to: ``None`` for a stop, an exception for a failure."""

    def __init__(self, on_batch: OnBatch) -> None:
        self.on_batch = on_batch
        self.end: queue.Queue[Exception | None] = queue.Queue()
        self.is_idle = threading.Event()

    def wait(self) -> None:
        failure = self.end.get()
        self.is_idle.set()
        if failure:
            raise failure

    def stop(self) -> None:
        self.end.put(None)

    def finish_available(self) -> None:
        self.is_idle.wait()
        if not self.end.empty():
            raise RuntimeError("ended")

    def rows_per_s(self) -> float:
        return 12.5


class Starts:
    """Hands the test every query that the feed starts; the first ``refused`` starts fail."""

    def __init__(self, refused: int = 0) -> None:
        self.queries: queue.Queue[Scripted] = queue.Queue()
        self.refused = refused

    def __call__(self, on_batch: OnBatch) -> Scripted:
        if self.refused:
            self.refused -= 1
            raise RuntimeError("no such directory")
        query = Scripted(on_batch)
        self.queries.put(query)
        return query

    def next(self) -> Scripted:
        return self.queries.get(timeout=10)


def feed(starts: Starts) -> RunningFeed:
    return RunningFeed("f", starts, first_pause_s=0.001)


def test_a_failed_query_is_started_again_and_the_reason_is_told() -> None:
    starts = Starts()
    running = feed(starts)
    starts.next().end.put(RuntimeError("disk full"))
    starts.next()
    status = running.status()
    running.stop()
    assert (status.failures, status.error) == (1, "disk full")


def test_a_query_that_somebody_ended_is_started_again_after_a_pause() -> None:
    starts = Starts()
    running = feed(starts)
    starts.next().stop()
    starts.next()
    status = running.status()
    running.stop()
    assert (status.failures, status.error) == (1, "its query was ended from outside")


def test_a_feed_that_cannot_start_keeps_trying() -> None:
    starts = Starts(refused=3)
    running = feed(starts)
    starts.next()
    assert running.status().failures == 3
    running.stop()


def test_a_batch_that_got_through_clears_the_error_and_is_counted() -> None:
    starts = Starts(refused=1)
    running = feed(starts)
    query = starts.next()
    query.on_batch(4, Delivered(10, 2))
    query.on_batch(5, Delivered(1, 0))
    status = running.status()
    running.stop()
    assert (status.last_batch, status.records, status.rejected, status.error) == (5, 11, 2, None)


def test_stopping_ends_the_query_and_starts_no_other() -> None:
    starts = Starts()
    running = feed(starts)
    starts.next()
    running.stop()
    assert running.status().state is FeedState.STOPPED
    assert starts.queries.empty()


def test_stopping_interrupts_the_back_off() -> None:
    starts = Starts(refused=1)
    running = RunningFeed("f", starts, first_pause_s=3600)
    running.stop()
    assert running.status().state is FeedState.STOPPED


def test_waiting_for_a_feed_that_fails_for_ever_tells_why() -> None:
    running = RunningFeed("f", Starts(refused=10**9), first_pause_s=3600)
    with pytest.raises(TimeoutError, match="no such directory"):
        running.await_idle(timeout_s=0.2)
    running.stop()


def test_a_new_feed_has_delivered_nothing() -> None:
    assert FeedStatus() == FeedStatus(FeedState.STARTING, None, None, 0, 0, 0.0, 0, None)


def test_the_log_says_once_that_a_feed_fails_and_that_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    starts = Starts(refused=3)
    running = feed(starts)
    starts.next().on_batch(1, Delivered(1, 0))
    running.stop()
    assert caplog.messages == [
        "feed f failed and is started again until it runs: no such directory",
        "feed f delivers again",
    ]
