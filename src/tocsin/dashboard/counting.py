"""Counters that only grow, read now and then: how fast they grew of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping


class Growth:
    """Keeps what was read in the last ``window_s``, and the last reading however old it is: what a counter grew by
    while nobody could read it is told when it can be read again. A counter that fell began anew, and so does its past.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._read: dict[str, deque[tuple[float, float]]] = {}

    def note(self, at: float, values: Mapping[str, float]) -> None:
        """What those counters say now that could be read; ``at`` is of a clock that is never set back."""
        for name, value in values.items():
            self._add(name, at, value)
        for read in self._read.values():
            while len(read) > 1 and read[1][0] <= at - self._window_s:
                read.popleft()

    def keep(self, labels: Collection[str]) -> None:
        """Forget the counters with another label behind their name than these."""
        self._read = {name: read for name, read in self._read.items() if name.partition(" ")[2] in labels}

    def grown(self, name: str) -> float:
        """By how much in the window."""
        read = self._read.get(name)
        return read[-1][1] - read[0][1] if read else 0.0

    def per_s(self, name: str) -> float:
        read = self._read.get(name)
        passed_s = read[-1][0] - read[0][0] if read else 0.0
        return self.grown(name) / passed_s if passed_s > 0 else 0.0

    def ratio(self, name: str, by: str) -> float | None:
        """How much one grew for each that the other grew; None where that did not."""
        return self.grown(name) / grown if (grown := self.grown(by)) > 0 else None

    def mean_ms(self, name: str) -> float | None:
        """What was observed by the histogram ``name``, which may have a label behind it, in milliseconds."""
        series, _, label = name.partition(" ")
        mean_s = self.ratio(f"{series}_sum {label}", f"{series}_count {label}")
        return None if mean_s is None else round(mean_s * 1000, 1)

    def _add(self, name: str, at: float, value: float) -> None:
        read = self._read.setdefault(name, deque())
        if read and value < read[-1][1]:
            read.clear()
        read.append((at, value))
