"""Load as moving averages: rates that fade with a time constant, without timers.

Model bytes are those of the paper's equation 1: a stream's payload counts once on its way in, and once for
every subscriber that gets it on its way out. Wire bytes are what was given to sockets.
"""

from __future__ import annotations

import math

from tocsin.protocol.coordination import Load


class MovingRate:
    """Amounts a second, each amount fading by e in ``window_s``."""

    __slots__ = ("_at", "_rate", "_window_s")

    def __init__(self, window_s: float, now: float) -> None:
        self._window_s, self._at, self._rate = window_s, now, 0.0

    def add(self, amount: float, now: float) -> None:
        self._rate = self.value(now) + amount / self._window_s
        self._at = now

    def value(self, now: float) -> float:
        return self._rate * math.exp(-max(0.0, now - self._at) / self._window_s)


class Meters:
    """One broker's."""

    def __init__(self, window_s: float, now: float) -> None:
        self.window_s = window_s
        self.model_in = MovingRate(window_s, now)
        self.model_out = MovingRate(window_s, now)
        self.wire_out = MovingRate(window_s, now)
        self.records_in = MovingRate(window_s, now)
        self.loop_lag_s = 0.0
        self.delivered = self.shed = self.wire_bytes = self.gaps = 0

    def lagged(self, late_s: float) -> None:
        """The loop ran a timer ``late_s`` late."""
        self.loop_lag_s += (max(0.0, late_s) - self.loop_lag_s) * 0.2

    def load(self, connections: int, now: float) -> Load:
        return Load(
            model_in_per_s=self.model_in.value(now),
            model_out_per_s=self.model_out.value(now),
            wire_out_per_s=self.wire_out.value(now),
            records_in_per_s=self.records_in.value(now),
            connections=connections,
            loop_lag_s=self.loop_lag_s,
        )
