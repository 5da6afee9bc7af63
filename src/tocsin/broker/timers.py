"""One timer for all connections: a wheel of one-second buckets.

Who is due tells when to be looked at again, so a deadline that moves later (the peer said something) costs
nothing until then.
"""

from __future__ import annotations

from typing import Protocol

FAR = 1e12  # seconds: as good as never
FAR_TURNS = 86_400


class Timed(Protocol):
    turn: int | None
    """The wheel's: which bucket it is in."""

    def due(self, now: float) -> float | None:
        """Called at or after its time; gives the next time, or None for never."""
        ...


class Wheel:
    def __init__(self, now: float, step_s: float = 1.0) -> None:
        self._step_s = step_s
        self._turn = int(now / step_s)
        self._buckets: dict[int, list[Timed]] = {}

    def add(self, timed: Timed, at: float) -> None:
        """Look at ``timed`` at or soon after ``at``, or earlier where that was arranged already."""
        turn = max(self._turn + 1, int(at / self._step_s) + 1) if at < FAR else self._turn + FAR_TURNS
        if timed.turn is None or turn < timed.turn:
            timed.turn = turn
            self._buckets.setdefault(turn, []).append(timed)

    def advance(self, now: float) -> None:
        """Look at everyone whose time has come."""
        last = int(now / self._step_s)
        while self._turn < last:
            self._turn += 1
            for timed in self._buckets.pop(self._turn, ()):
                if timed.turn == self._turn:  # otherwise it was arranged anew, for earlier
                    timed.turn = None
                    at = timed.due(now)
                    if at is not None:
                        self.add(timed, at)
