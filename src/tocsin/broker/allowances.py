"""How fast users may send over HTTP, where no connection stands for one.

A user has a bucket as a WebSocket has: it holds two seconds' worth and fills at the allowed rate. A bucket that
nobody took from for two seconds is full, so it is forgotten, and memory is bounded by what was sent in that time.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.errors import LimitExceeded

BURST_S = 2.0


class Allowances:
    """``now`` tells a time that never goes back."""

    def __init__(self, per_s: float, now: Callable[[], float]) -> None:
        self._per_s, self._now = per_s, now
        self._buckets: dict[str, tuple[float, float]] = {}  # what was left and when, last used last

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, user: str) -> None:
        """Count one message of ``user``; LimitExceeded, with when to come again, where it is one too many."""
        now, full = self._now(), max(1.0, BURST_S * self._per_s)
        self._forget(now)
        left, at = self._buckets.pop(user, (full, now))
        left = min(full, left + (now - at) * self._per_s)
        is_allowed = left >= 1
        self._buckets[user] = (left - 1 if is_allowed else left, now)
        if not is_allowed:
            raise LimitExceeded("messages of one user a second", self._per_s, retry_after_s=(1 - left) / self._per_s)

    def _forget(self, now: float) -> None:
        """Drop what is full again."""
        while self._buckets:
            user, (_, at) = next(iter(self._buckets.items()))
            if now - at < max(BURST_S, 1 / self._per_s):
                return
            del self._buckets[user]
