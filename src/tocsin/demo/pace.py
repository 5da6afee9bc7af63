"""How fast the feed goes: with the clock, slower while channels lag, never faster to make up for it.

Time that was lost is held against the machine and told at the end. Up to ``EASY_S`` of lag the run
keeps the pace of the clock, from ``HARD_S`` on it stands still, in between it slows in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass

EASY_S = 3.0
HARD_S = 10.0
LONGEST_STEP_S = 0.5  # more at once would be a burst


@dataclass(slots=True)
class Pace:
    """``run_s`` is the time of the run, ``held_s`` by how much it is behind the clock."""

    run_s: float = 0.0
    held_s: float = 0.0

    def advance(self, passed_s: float, lag_s: float) -> float:
        """So much time has passed on the clock; the new time of the run."""
        step = min(passed_s, LONGEST_STEP_S) * ease(lag_s)
        self.run_s += step
        self.held_s += passed_s - step
        return self.run_s


def ease(lag_s: float) -> float:
    """The share of full speed at this lag, from 1 down to 0."""
    return min(1.0, max(0.0, (HARD_S - lag_s) / (HARD_S - EASY_S)))
