"""Who lives: silence counted in time in which the coordinator itself ran.

A coordinator that was kept from running, by a busy machine or a stopped process, has heard nobody; it must
not take that for everyone's death. So silence is measured on a clock of its own, which advances with the
coordinator's ticks: of a tick that comes late only ``longest_tick_s`` count, and reports that waited
meanwhile are read before the next tick adds more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tocsin.coordinator.rules import Rules


class Verdict(StrEnum):
    WELL = "well"
    SILENT = "silent"
    DEAD = "dead"


class AwakeClock:
    """Seconds in which the coordinator ran."""

    def __init__(self, longest_tick_s: float) -> None:
        self._longest_tick_s = longest_tick_s
        self.now_s = 0.0

    def advance(self, elapsed_s: float) -> None:
        self.now_s += max(0.0, min(elapsed_s, self._longest_tick_s))


@dataclass(slots=True)
class Signs:
    """When a broker was last heard, and since when its address refuses connections; awake seconds."""

    heard_s: float
    refused_s: float | None = None

    def heard(self, now_s: float) -> None:
        self.heard_s, self.refused_s = now_s, None

    def verdict(self, now_s: float, rules: Rules) -> Verdict:
        silence_s = now_s - self.heard_s
        if silence_s >= rules.dead_after_s or (self.refused_s is not None and silence_s >= rules.refused_after_s):
            return Verdict.DEAD
        return Verdict.SILENT if silence_s >= rules.silent_after_s else Verdict.WELL
