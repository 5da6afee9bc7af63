"""How long records take to become results: when each batch came, and which execution saw it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from tocsin.clock import Clock
from tocsin.datacluster.spark.relations import Window

_REMEMBERED = 4096  # batches of a dataset; what waited longer than that is not measured


class Arrivals:
    """``measured`` gets channel and seconds for each batch whose last record an execution saw. Safe for any thread."""

    def __init__(self, clock: Clock, measured: Callable[[str, float], None]) -> None:
        self._clock, self._measured = clock, measured
        self._batches: dict[str, deque[tuple[int, float]]] = {}  # lower-case dataset → (last number, moment)

    def came(self, dataset: str, head: int) -> None:
        batches = self._batches.setdefault(dataset.lower(), deque(maxlen=_REMEMBERED))
        batches.append((head, self._clock.monotonic()))

    def forget(self, dataset: str) -> None:
        self._batches.pop(dataset.lower(), None)

    def seen(self, channel: str, windows: Mapping[str, Window]) -> None:
        """An execution of ``channel`` that read ``windows`` was committed."""
        now = self._clock.monotonic()
        for dataset, window in windows.items():
            for head, came_at in reversed(list(self._batches.get(dataset, ()))):
                if head <= window.after:
                    break
                if head <= window.through:
                    self._measured(channel, now - came_at)
