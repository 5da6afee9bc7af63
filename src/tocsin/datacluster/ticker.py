"""Runs channels when they are due: the thread around the timetable, and the pool that executes.

One thread asks the timetable; groups of channels run in a small pool. A group that still runs is not
started again: what arrives meanwhile is taken by its next tick.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tocsin.clock import Clock
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.executor import Executor, Tick
from tocsin.datacluster.schedule import Schedule
from tocsin.errors import ExecutionFailed

log = logging.getLogger(__name__)
_LONGEST_WAIT_S = 60.0


class Ticker:
    def __init__(
        self, schedule: Schedule, executor: Executor, clock: Clock, on_tick: Callable[[Tick], None], parallel_jobs: int
    ) -> None:
        self._schedule, self._executor, self._clock, self._on_tick = schedule, executor, clock, on_tick
        self._channels: dict[int, Channel] = {}
        self._changed = threading.Condition()
        self._is_stopping = False
        self._pool = ThreadPoolExecutor(parallel_jobs, thread_name_prefix="tick")
        self._thread = threading.Thread(target=self._loop, name="ticker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start nothing more and wait for what runs."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True)

    def add(self, channel: Channel) -> None:
        with self._changed:
            self._channels[channel.id] = channel
            period = None if channel.spec.continuous else channel.spec.period_s
            self._schedule.add(channel.id, channel.group, period, self._clock.monotonic(), is_paused=channel.is_paused)
            self._changed.notify_all()

    def remove(self, channel: Channel) -> None:
        """Take a channel out; returns when it no longer runs."""
        with self._changed:
            if channel.id in self._channels:
                self._schedule.pause(channel.id)
            self._changed.wait_for(lambda: not self._schedule.is_running(channel.id))
            self._channels.pop(channel.id, None)
            self._schedule.remove(channel.id)

    def pause(self, channel: Channel) -> None:
        with self._changed:
            self._schedule.pause(channel.id)

    def resume(self, channel: Channel) -> None:
        with self._changed:
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
        with self._changed:
            if self._schedule.failures(channel.id) == 0 and not self._executor.has_new(channel):
                return 0.0
            return self._schedule.lag_s(channel.id, self._clock.monotonic())

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
                started = [[self._channels[c] for c in members] for members in groups.values()]
            for channels in started:
                self._pool.submit(self._run, channels)

    def _patience(self) -> float:
        wake = self._schedule.next_wake()
        return _LONGEST_WAIT_S if wake is None else max(0.0, min(_LONGEST_WAIT_S, wake - self._clock.monotonic()))

    def _run(self, channels: Sequence[Channel]) -> None:
        try:
            ticks = self._executor.run(channels)
        except Exception as problem:
            log.exception("a tick of %s failed outside Spark", ", ".join(c.spec.name for c in channels))
            failure = f"{type(problem).__name__}: {problem}"
            ticks = [Tick(c, True, problem=ExecutionFailed(c.spec.name, failure, c.spec.query)) for c in channels]
        for tick in ticks:
            self._ended(tick)

    def _ended(self, tick: Tick) -> None:
        try:
            self._on_tick(tick)
        except Exception:
            log.exception("after a tick of %s", tick.channel.spec.name)
        now = self._clock.monotonic()
        with self._changed:
            if tick.problem is None:
                self._schedule.finished(tick.channel.id, now, has_more=tick.has_more)
            else:
                tick.channel.problem = tick.problem.problem
                wait = self._schedule.failed(tick.channel.id, now)
                log.warning("channel %s failed, next try in %.1f s: %s", tick.channel.spec.name, wait, tick.problem)
            self._changed.notify_all()
