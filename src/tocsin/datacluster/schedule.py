"""When channels run: a pure timetable, told the time and what happened, asked what is due.

Rules it keeps:

- A periodic channel is due at multiples of its period. A tick that comes while the channel still runs,
  or waits, is coalesced with the one before: it is counted, and nothing is queued.
- A continuous channel is due when data has arrived, at the earliest ``min_gap_s`` after it last started;
  what arrives while it runs makes it due again when it has finished.
- A channel never runs twice at once. A failing one is retried with doubling back-off, alone; one that only took
  too long pauses for at least twice the time that it took, since that was taken from others.
- Channels of one group (same driving dataset, same strategy) that are due together start together.

Lag is how long the oldest due tick of a channel has been waiting or running.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class _Entry:
    group: Hashable
    period_s: float | None
    next_tick: float
    due_at: float | None = None
    started_at: float = float("-inf")
    running_since_due: float | None = None
    is_running: bool = False
    is_paused: bool = False
    failures: int = 0
    retry_at: float = float("-inf")
    coalesced: int = 0


class Schedule:
    """The timetable of all channels of a cluster."""

    def __init__(
        self, min_gap_s: float, backoff_min_s: float, backoff_max_s: float, slow_backoff_max_s: float = 600.0
    ) -> None:
        self._min_gap_s, self._slow_backoff_max_s = min_gap_s, slow_backoff_max_s
        self._backoff_min_s, self._backoff_max_s = backoff_min_s, backoff_max_s
        self._entries: dict[int, _Entry] = {}

    def add(
        self, channel: int, group: Hashable, period_s: float | None, now: float, *, is_paused: bool = False
    ) -> None:
        """A new channel; a continuous one is due at once, in case data came before it was scheduled."""
        first = now + period_s if period_s else now
        self._entries[channel] = _Entry(group, period_s, first, is_paused=is_paused)
        if period_s is None:
            self._entries[channel].due_at = now

    def remove(self, channel: int) -> None:
        self._entries.pop(channel, None)

    def pause(self, channel: int) -> None:
        self._entries[channel].is_paused = True

    def resume(self, channel: int, now: float) -> None:
        entry = self._entries[channel]
        entry.is_paused, entry.failures, entry.retry_at = False, 0, float("-inf")
        entry.due_at = entry.due_at if entry.due_at is not None else now

    def arrived(self, channel: int, now: float) -> None:
        """Data for a continuous channel; a periodic one waits for its tick."""
        entry = self._entries.get(channel)
        if entry is not None and entry.period_s is None and entry.due_at is None:
            entry.due_at = now

    def start_due(self, now: float) -> dict[Hashable, list[int]]:
        """Channels to start now, by group; each is running from here on."""
        started: dict[Hashable, list[int]] = {}
        for channel, entry in self._entries.items():
            self._tick(entry, now)
            if self._may_start(entry, now):
                entry.is_running, entry.started_at = True, now
                entry.running_since_due, entry.due_at = entry.due_at, None
                group = (entry.group, channel) if entry.failures else entry.group
                started.setdefault(group, []).append(channel)
        return started

    def finished(self, channel: int, now: float, *, has_more: bool) -> None:
        """The channel ended well; ``has_more`` says that data is waiting for a continuous channel."""
        entry = self._entries.get(channel)
        if entry is None:
            return
        entry.is_running, entry.running_since_due, entry.failures = False, None, 0
        if has_more and entry.period_s is None and entry.due_at is None:
            entry.due_at = now

    def failed(self, channel: int, now: float, took_s: float = 0.0) -> float:
        """The channel failed, after ``took_s`` if that was too long; gives the seconds until it is tried again."""
        entry = self._entries.get(channel)
        if entry is None:
            return 0.0
        entry.failures += 1
        wait = min(self._backoff_max_s, self._backoff_min_s * 2.0 ** min(entry.failures - 1, 30))
        wait = max(wait, min(self._slow_backoff_max_s, 2 * took_s))
        entry.due_at = entry.running_since_due if entry.running_since_due is not None else now
        entry.is_running, entry.running_since_due, entry.retry_at = False, None, now + wait
        return wait

    def next_wake(self) -> float | None:
        """The next instant at which something may become due without news."""
        waiting = [self._ready_at(e) for e in self._entries.values() if not e.is_paused and not e.is_running]
        return min(waiting, default=None)

    def lag_s(self, channel: int, now: float) -> float:
        entry = self._entries.get(channel)
        if entry is None or entry.is_paused:
            return 0.0
        since = entry.running_since_due if entry.running_since_due is not None else entry.due_at
        return max(0.0, now - since) if since is not None else 0.0

    def coalesced(self, channel: int) -> int:
        entry = self._entries.get(channel)
        return entry.coalesced if entry else 0

    def failures(self, channel: int) -> int:
        entry = self._entries.get(channel)
        return entry.failures if entry else 0

    def is_running(self, channel: int) -> bool:
        entry = self._entries.get(channel)
        return entry is not None and entry.is_running

    def _tick(self, entry: _Entry, now: float) -> None:
        if entry.period_s is None or now < entry.next_tick:
            return
        missed = int((now - entry.next_tick) // entry.period_s)
        entry.coalesced += missed + (entry.is_running or entry.due_at is not None)
        if entry.due_at is None and not entry.is_running:
            entry.due_at = entry.next_tick
        entry.next_tick += (missed + 1) * entry.period_s

    def _may_start(self, entry: _Entry, now: float) -> bool:
        if entry.is_running or entry.is_paused or entry.due_at is None:
            return False
        return now >= max(entry.due_at, entry.retry_at, self._earliest(entry))

    def _earliest(self, entry: _Entry) -> float:
        return entry.started_at + self._min_gap_s if entry.period_s is None else float("-inf")

    def _ready_at(self, entry: _Entry) -> float:
        if entry.due_at is None:
            return entry.next_tick if entry.period_s is not None else float("inf")
        return max(entry.due_at, entry.retry_at, self._earliest(entry))
