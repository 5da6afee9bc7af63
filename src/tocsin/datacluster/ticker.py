"""Runs channels when they are due: the thread around the timetable, and the pool that executes.

One thread asks the timetable; groups of channels run in a small pool. A group that still runs is not
started again: what arrives meanwhile is taken by its next tick. Channels that failed before are tried
again in a pool of one, so that those which need their whole time limit every time take no other's place.

What a statement or a drain ends is cancelled on Spark, or not begun where it still waits in the pool. Where
even cancelling does not end it (Spark plans, or evaluates in its driver), nobody waits longer than
``stop_wait_s``: the run goes on as nobody's. Its execution was abandoned by the statement, so the ledger
refuses its commit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from tocsin.clock import Clock
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.executor import Executor, Tick
from tocsin.datacluster.schedule import Schedule
from tocsin.datacluster.spark.jobs import Jobs
from tocsin.errors import ExecutionFailed, ExecutionTooLong

log = logging.getLogger(__name__)
_LONGEST_WAIT_S = 60.0
_NOTABLE_LAG_S = 1.0


class Ticker:
    def __init__(
        self, schedule: Schedule, executor: Executor, jobs: Jobs, clock: Clock, on_tick: Callable[[Tick], None],
        parallel_jobs: int, stop_wait_s: float,
    ) -> None:  # fmt: skip
        self._schedule, self._executor, self._jobs = schedule, executor, jobs
        self._clock, self._on_tick, self._stop_wait_s = clock, on_tick, stop_wait_s
        self._channels: dict[int, Channel] = {}
        self._runs: dict[int, int] = {}  # channel → serial number of the run that counts
        self._queued: dict[int, float] = {}  # channels whose run waits for a thread of its pool, since when
        self._serial = count(1)
        self._changed = threading.Condition()
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(parallel_jobs, thread_name_prefix="tick")
        self._retries = ThreadPoolExecutor(1, thread_name_prefix="retry")
        self._thread = threading.Thread(target=self._loop, name="ticker", daemon=True)
        jobs.queued_since = self._queued_since

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start nothing more; let what runs finish, or cancel it when it takes too long."""
        with self._changed:
            self._is_stopping = True
            for queued in list(self._queued):
                self._give_up(queued)
            self._changed.notify_all()
            if not self._wait_until_ended(list(self._channels)):
                for channel in self._running():
                    self._jobs.bar(channel.spec.name, "the cluster stops")
                self._wait_until_ended(list(self._channels))
            left = self._running()
        if self._thread.is_alive():
            self._thread.join()
        for pool in (self._pool, self._retries):
            pool.shutdown(wait=not left, cancel_futures=True)

    def add(self, channel: Channel) -> None:
        with self._changed:
            self._channels[channel.id] = channel
            self._jobs.allow(channel.spec.name)
            period = None if channel.spec.continuous else channel.spec.period_s
            self._schedule.add(channel.id, channel.group, period, self._clock.monotonic(), is_paused=channel.is_paused)
            self._changed.notify_all()

    def remove(self, channel: Channel) -> None:
        """Take a channel out, and end its execution."""
        with self._changed:
            if channel.id not in self._channels:
                return
            self._schedule.pause(channel.id)
            self._jobs.bar(channel.spec.name, "the channel is being replaced or dropped")
            self._wait_until_ended([channel.id])
            self._give_up(channel.id)
            del self._channels[channel.id]
            self._schedule.remove(channel.id)
            self._jobs.allow(channel.spec.name)

    def pause(self, channel: Channel) -> None:
        """Start a channel no more and end its execution; its window is evaluated after ``resume``."""
        with self._changed:
            if channel.id in self._channels:
                self._schedule.pause(channel.id)
                self._jobs.bar(channel.spec.name, "the channel is paused")

    def resume(self, channel: Channel) -> None:
        with self._changed:
            self._jobs.allow(channel.spec.name)
            self._schedule.resume(channel.id, self._clock.monotonic())
            self._changed.notify_all()

    def arrived(self, dataset: str) -> None:
        """Records of ``dataset`` became durable."""
        now = self._clock.monotonic()
        with self._changed:
            for channel in self._channels.values():
                if dataset in channel.windows:
                    self._schedule.arrived(channel.id, now)
            self._changed.notify_all()

    def lag_s(self, channel: Channel) -> float:
        """How much longer than its period the oldest record that a channel has not seen has waited."""
        with self._changed:
            if channel.is_paused or not self._executor.has_new(channel):
                return 0.0
            late = self._schedule.lag_s(channel.id, self._clock.monotonic())
        since = self._executor.waiting_since(channel)
        period = 0.0 if channel.spec.continuous else channel.spec.period_s or 0.0
        return max(late, self._clock.now() - since - period) if since is not None else late

    def waits_for(self, channel: Channel) -> str | None:
        """Which others keep a channel waiting, in words."""
        others = self._jobs.waited_for
        if not others or channel.spec.name in others or self.lag_s(channel) < _NOTABLE_LAG_S:
            return None
        return f"waits for {', '.join(sorted(others))}, whose execution holds Spark"

    def _queued_since(self) -> float | None:
        with self._changed:
            return min(self._queued.values(), default=None)

    def coalesced(self, channel: Channel) -> int:
        with self._changed:
            return self._schedule.coalesced(channel.id)

    def _loop(self) -> None:
        while True:
            with self._changed:
                if self._is_stopping:
                    return
                groups = self._schedule.start_due(self._clock.monotonic())
                if not groups:
                    self._changed.wait(self._patience())
                    continue
                started = [self._begun(members) for members in groups.values()]
            for pool, channels, serial in started:
                pool.submit(self._run, channels, serial)

    def _begun(self, members: Sequence[int]) -> tuple[ThreadPoolExecutor, list[Channel], int]:
        serial = next(self._serial)
        self._runs.update(dict.fromkeys(members, serial))
        self._queued.update(dict.fromkeys(members, time.monotonic()))
        pool = self._retries if any(self._schedule.failures(c) for c in members) else self._pool
        return pool, [self._channels[c] for c in members], serial

    def _running(self) -> list[Channel]:
        return [c for c in self._channels.values() if self._is_running(c.id)]

    def _is_running(self, channel: int) -> bool:
        """A run that waits for a thread is none: nothing needs to end for it."""
        return self._schedule.is_running(channel) and channel in self._runs and channel not in self._queued

    def _give_up(self, channel: int) -> None:
        """The channel's run, if any, counts no more: one that waits is not begun, one that goes on is nobody's."""
        self._runs.pop(channel, None)
        self._queued.pop(channel, None)

    def _wait_until_ended(self, channels: Sequence[int]) -> bool:
        """Whether none of ``channels`` runs any more, waiting a while for it."""
        return self._changed.wait_for(lambda: not any(self._is_running(c) for c in channels), self._stop_wait_s)

    def _patience(self) -> float:
        wake = self._schedule.next_wake()
        return _LONGEST_WAIT_S if wake is None else max(0.0, min(_LONGEST_WAIT_S, wake - self._clock.monotonic()))

    def _run(self, waiting: Sequence[Channel], serial: int) -> None:
        channels = self._taken_up(waiting, serial)
        if not channels:
            return
        try:
            ticks = self._executor.run(channels)
        except Exception as problem:
            log.exception("a tick of %s failed outside Spark", ", ".join(c.spec.name for c in channels))
            failure = f"{type(problem).__name__}: {problem}"
            ticks = [Tick(c, True, problem=ExecutionFailed(c.spec.name, failure, c.spec.query)) for c in channels]
        for tick in ticks:
            self._ended(tick, serial)

    def _taken_up(self, waiting: Sequence[Channel], serial: int) -> list[Channel]:
        """Those that were not taken out while the run waited."""
        with self._changed:
            channels = [c for c in waiting if self._runs.get(c.id) == serial]
            for channel in channels:
                self._queued.pop(channel.id, None)
            return channels

    def _ended(self, tick: Tick, serial: int) -> None:
        try:
            self._on_tick(tick)
        except Exception:
            log.exception("after a tick of %s", tick.channel.spec.name)
        now = self._clock.monotonic()
        with self._changed:
            if self._runs.get(tick.channel.id) != serial:
                return  # the channel was taken out meanwhile
            if tick.problem is None or tick.is_stopped:
                self._schedule.finished(tick.channel.id, now, has_more=tick.has_more)
            else:
                tick.channel.problem = tick.problem.problem
                is_slow = isinstance(tick.problem, ExecutionTooLong)
                wait = self._schedule.failed(tick.channel.id, now, took_s=tick.duration_s if is_slow else 0.0)
                log.warning("channel %s failed, next try in %.1f s: %s", tick.channel.spec.name, wait, tick.problem)
            self._changed.notify_all()
