"""What the broker received from one channel.

A row names the backend subscriptions that it is for; a row and one of them is a match. A notification is a
row for one person's subscription: each match makes as many as people share it. In every channel of the
demonstration a report reaches a backend subscription at most once, so a pair that comes again was doubled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Pair = tuple[str, int]
Reached = Callable[[Sequence[int], str], int]


@dataclass(slots=True)
class Tally:
    rows: int = 0
    by_backend: Counter[int] = field(default_factory=Counter)  # matches
    notifications: int = 0
    positions: dict[Pair, str] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    doubled: int = 0
    gaps: list[str] = field(default_factory=list)
    arrivals: list[tuple[str, float]] = field(default_factory=list)  # report, when its row was in our hands

    def add(self, results: Iterable[Mapping[str, Any]], at: float, reached: Reached) -> None:
        """Count a page of results that came ``at`` this time; ``reached`` counts the people behind a row."""
        for result in results:
            report, backends = result["payload"]["report_id"], result["backends"]
            self.rows += 1
            self.by_backend.update(backends)
            self.notifications += reached(backends, result["position"])
            self.arrivals.append((report, at))
            self._note(result["id"], {(report, backend): result["position"] for backend in backends})

    def latencies_s(
        self, accepted_at: Mapping[str, float], last: int | None = None
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """For all rows, or the last so many, from the receipt of their report; zero where the row was faster."""
        arrivals = self.arrivals[-last:] if last else self.arrivals.copy()
        return waits_s(arrivals, accepted_at)

    @property
    def matches(self) -> int:
        return self.by_backend.total()

    @property
    def pairs(self) -> AbstractSet[Pair]:
        return self.positions.keys()

    def _note(self, id: str, pairs: Mapping[Pair, str]) -> None:
        before = len(self.positions)
        self.positions.update(pairs)
        again = len(pairs) - (len(self.positions) - before)
        self.doubled += max(again, int(id in self.ids))
        self.ids.add(id)


def waits_s(
    arrivals: Iterable[tuple[str, float]], accepted_at: Mapping[str, float]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How long each arrival was behind its report; those of unknown reports are left out."""
    waits = [max(0.0, at - accepted_at[report]) for report, at in arrivals if report in accepted_at]
    return np.array(waits, dtype=np.float64)


def quantiles_ms(latencies_s: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float] | None:
    """The 50th and the 99th percentile, if there is anything."""
    if not latencies_s.size:
        return None
    p50, p99 = np.percentile(latencies_s, (50, 99)) * 1000
    return round(float(p50), 1), round(float(p99), 1)
