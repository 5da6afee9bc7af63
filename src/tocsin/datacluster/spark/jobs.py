"""Spark jobs of channels, and how they are ended: by the time limit, by a statement, by a drain.

Each thread that evaluates channels has a job group and a pool of the fair scheduler, both named after
it, so that neither a long SELECT nor another channel's long job keeps its tasks waiting in line.

Rules:

- ``run`` answers for some channels. While one of them is barred it is not started, and ``Stopped`` is
  raised; one that is barred meanwhile is cancelled after ``end_wait_s``, in which most come to their end:
  cancelling takes Python workers with it, which the others would have to wait for.
- A run over its limit is cancelled, and ``OverLimit`` is raised.
- So is the longest one when others (executions, SELECTs, feeds) wait for a place on Spark or for a thread; each
  time that this ends a channel's run, its next may hold others for twice as long, eight times at most. So the
  others go on, and what takes long comes to its end, too, if it has one.
- A cancel that comes between two jobs of a run meets none of them, so it is repeated until the run ends.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tocsin.datacluster.spark.starving import Starving
from tocsin.units import format_duration

T = TypeVar("T")
POOL = "spark.scheduler.pool"
_MOST_DOUBLINGS = 3


class JobEnded(Exception):
    """A run did not come to its own end."""


class Stopped(JobEnded):
    """One of its channels was paused, replaced or dropped, or the cluster stops."""


class OverLimit(JobEnded):
    """It took longer than ``channels.execution_limit``, or than ``channels.yield_after`` while others waited."""


@dataclass(slots=True)
class _Run:
    channels: frozenset[str]
    group: str
    began: float
    may_hold_s: float
    cancel_at: float
    ended: JobEnded | None = None
    is_over: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock)  # held while it is cancelled


class Jobs:
    """``queued_since`` tells since when the first of those waits that have no thread yet, ``None`` if nobody does."""

    def __init__(self, spark: SparkSession, limit_s: float, yield_after_s: float, end_wait_s: float) -> None:
        self._spark, self._limit_s, self._yield_after_s, self._end_wait_s = spark, limit_s, yield_after_s, end_wait_s
        self._look_s = min(1.0, yield_after_s / 4)
        self._starving = Starving(spark.sparkContext)
        self._yields: Counter[str] = Counter()
        self.queued_since: Callable[[], float | None] = lambda: None
        self.waited_for: frozenset[str] = frozenset()
        self._changed = threading.Condition()
        self._runs: list[_Run] = []
        self._barred: dict[str, str] = {}
        self._is_closed = False
        self._named, self._serial = threading.local(), uuid.uuid4().hex[:8]
        self._thread = threading.Thread(target=self._watch, name="job-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def run(self, channels: Sequence[str], work: Callable[[], T]) -> T:
        """What ``work`` gives; ``JobEnded`` where it was not started or was cancelled."""
        self._name_thread()
        with self._registered(channels) as run:
            try:
                answer = work()
            except Exception as problem:
                if run.ended is not None:
                    raise run.ended from problem
                raise
            for channel in channels:
                self._yields.pop(channel, None)
            return answer

    def bar(self, channel: str, why: str) -> None:
        """Let nothing run for a channel, and end what does."""
        with self._changed:
            self._barred[channel] = why
            for run in self._runs:
                if channel in run.channels and run.ended is None:
                    run.ended, run.cancel_at = Stopped(why), time.monotonic() + self._end_wait_s
            self._changed.notify_all()

    def allow(self, channel: str) -> None:
        with self._changed:
            self._barred.pop(channel, None)
            self._yields.pop(channel, None)

    @contextlib.contextmanager
    def _registered(self, channels: Sequence[str]) -> Iterator[_Run]:
        now = time.monotonic()
        may_hold_s = self._yield_after_s * 2 ** min(_MOST_DOUBLINGS, min(self._yields[c] for c in channels))
        run = _Run(frozenset(channels), self._group(), now, may_hold_s, now + self._limit_s)
        with self._changed:
            barred = next((c for c in channels if c in self._barred), None)
            if barred is not None:
                raise Stopped(self._barred[barred])
            self._runs.append(run)
        try:
            yield run
        finally:
            with self._changed:
                self._runs.remove(run)
            with run.guard:
                run.is_over = True

    def _name_thread(self) -> None:
        """Once a thread: PySpark gives each one a thread of its own in the JVM, which keeps the names."""
        if not hasattr(self._named, "is_done"):
            context = self._spark.sparkContext
            context.setJobGroup(self._group(), "channels", interruptOnCancel=True)
            context.setLocalProperty(POOL, threading.current_thread().name)
            self._named.is_done = True

    def _group(self) -> str:
        return f"{threading.current_thread().name}-{self._serial}"

    def _watch(self) -> None:
        while not self._is_closed:
            self._look()
            for run in self._due():
                self._cancel(run)

    def _due(self) -> list[_Run]:
        """Wait a little for runs to cancel."""
        with self._changed:
            now = time.monotonic()
            wake = min([now + self._look_s, *(run.cancel_at for run in self._runs)])
            if not self._is_closed:
                self._changed.wait(max(0.0, wake - now))
            now = time.monotonic()
            due = [run for run in self._runs if run.cancel_at <= now]
            for run in due:
                run.ended = run.ended or self._over_limit()
                run.cancel_at = now + self._look_s
            return due

    def _look(self) -> None:
        """Have the longest run that others wait for cancelled when it has held them long enough."""
        now = time.monotonic()
        with self._changed:
            runs = sorted((r for r in self._runs if now - r.began >= self._look_s), key=lambda run: run.began)
        waited_s, holder = self._waited(now, runs) if runs else (0.0, None)
        with self._changed:
            self.waited_for = holder.channels if holder and waited_s > self._look_s else frozenset()
            if holder is None or holder.ended or waited_s < self._yield_after_s:
                return
            if now - holder.began >= holder.may_hold_s:
                self._yields.update(holder.channels)
                holder.ended, holder.cancel_at = self._held(holder), now

    def _waited(self, now: float, runs: Sequence[_Run]) -> tuple[float, _Run | None]:
        """For how long somebody waits, and for whom."""
        queued_since = self.queued_since()
        in_line_s = now - queued_since if queued_since is not None else 0.0
        try:
            starved_s = self._starving.look(now)
            holder = next((run for run in runs if self._starving.holds(run.group)), None)
        except (Py4JError, OSError):
            return 0.0, None
        return max(in_line_s, starved_s), holder

    def _held(self, run: _Run) -> OverLimit:
        limit = format_duration(run.may_hold_s)
        return OverLimit(f"took longer than {limit} while others waited (channels.yield_after) and was cancelled")

    def _over_limit(self) -> OverLimit:
        limit = format_duration(self._limit_s)
        return OverLimit(f"took longer than channels.execution_limit ({limit}) and was cancelled")

    def _cancel(self, run: _Run) -> None:
        """Without the lock, since Spark may not answer; a run's thread goes on to its next only when this is over."""
        with run.guard, contextlib.suppress(Py4JError, OSError):
            if not run.is_over:
                self._spark.sparkContext.cancelJobGroup(run.group)
