"""Spark jobs of channels, and how they are ended: by the time limit, by a statement, by a drain.

Each thread that evaluates channels has a job group and a pool of the fair scheduler, both named after
it, so that neither a long SELECT nor another channel's long job keeps its tasks waiting in line.

Rules:

- ``run`` answers for some channels. While one of them is barred it is not started, and ``Stopped`` is
  raised; one that is barred meanwhile is cancelled after a moment, in which most come to their end:
  cancelling takes Python workers with it, which the others would have to wait for.
- A run over its limit is cancelled, and ``OverLimit`` is raised.
- A cancel that comes between two jobs of a run meets none of them, so it is repeated until the run ends.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tocsin.units import format_duration

T = TypeVar("T")
POOL = "spark.scheduler.pool"
_MOMENT_S = 0.5
_AGAIN_S = 0.5


class JobEnded(Exception):
    """A run did not come to its own end."""


class Stopped(JobEnded):
    """One of its channels was paused, replaced or dropped, or the cluster stops."""


class OverLimit(JobEnded):
    """It took longer than ``channels.execution_limit``."""


@dataclass(slots=True)
class _Run:
    channels: frozenset[str]
    group: str
    cancel_at: float
    ended: JobEnded | None = None
    is_over: bool = False
    guard: threading.Lock = field(default_factory=threading.Lock)  # held while it is cancelled


class Jobs:
    def __init__(self, spark: SparkSession, limit_s: float) -> None:
        self._spark, self._limit_s = spark, limit_s
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
                return work()
            except Exception as problem:
                if run.ended is not None:
                    raise run.ended from problem
                raise

    def bar(self, channel: str, why: str) -> None:
        """Let nothing run for a channel, and end what does."""
        with self._changed:
            self._barred[channel] = why
            for run in self._runs:
                if channel in run.channels and run.ended is None:
                    run.ended, run.cancel_at = Stopped(why), time.monotonic() + _MOMENT_S
            self._changed.notify_all()

    def allow(self, channel: str) -> None:
        with self._changed:
            self._barred.pop(channel, None)

    @contextlib.contextmanager
    def _registered(self, channels: Sequence[str]) -> Iterator[_Run]:
        run = _Run(frozenset(channels), self._group(), time.monotonic() + self._limit_s)
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
            for run in self._due():
                self._cancel(run)

    def _due(self) -> list[_Run]:
        """Wait for runs to cancel; with nothing to watch a whole limit misses nothing: what starts ends later."""
        with self._changed:
            now = time.monotonic()
            wake = min((run.cancel_at for run in self._runs), default=now + self._limit_s)
            if not self._is_closed:
                self._changed.wait(max(0.0, wake - now))
            now = time.monotonic()
            due = [run for run in self._runs if run.cancel_at <= now]
            for run in due:
                run.ended = run.ended or self._over_limit()
                run.cancel_at = now + _AGAIN_S
            return due

    def _over_limit(self) -> OverLimit:
        limit = format_duration(self._limit_s)
        return OverLimit(f"took longer than channels.execution_limit ({limit}) and was cancelled")

    def _cancel(self, run: _Run) -> None:
        """Without the lock, since Spark may not answer; a run's thread goes on to its next only when this is over."""
        with run.guard, contextlib.suppress(Py4JError, OSError):
            if not run.is_over:
                self._spark.sparkContext.cancelJobGroup(run.group)
