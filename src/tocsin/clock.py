"""Time comes from outside: the live system passes a wall clock, tests and the lab a virtual one."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What a part that needs time asks for."""

    def now(self) -> float:
        """Seconds since the Unix epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class VirtualClock:
    """A clock that moves only when told to."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"a clock moves forward only, got {seconds} s")
        self._now += seconds
