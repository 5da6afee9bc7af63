"""The demonstration's broker: one long poll for all channels, counted and acknowledged, again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from tocsin.demo.audience import NAME, Audience
from tocsin.demo.link import Link
from tocsin.demo.tally import Tally

WAIT_S = 1.0
MAX_ROWS = 2_000  # short pages, so that a channel with many results does not delay the others


class Puller:
    """Remembers where it stands in each channel, from the positions that the cluster gave."""

    def __init__(self, link: Link, audience: Audience, broker: str = NAME) -> None:
        self._link, self._audience, self._path = link, audience, f"/brokers/{broker}"
        self.tallies = {channel: Tally() for channel in audience.backends}
        self._cursors: dict[str, str | None] = dict.fromkeys(self.tallies)
        self._lock = threading.Lock()
        self._is_counting = True

    def run(self, stopping: threading.Event) -> None:
        """Pull until told to stop."""
        while not stopping.is_set():
            self.pull(WAIT_S)

    def drain(self) -> None:
        """Pull what there is, to the end."""
        while self.pull(0.0):
            pass

    def end_counting(self) -> None:
        """From here on results are pulled and acknowledged, and not remembered."""
        with self._lock:
            self._is_counting = False
            self.tallies = {channel: Tally() for channel in self.tallies}

    def pull(self, wait_s: float) -> bool:
        """One pull; whether there may be more at once."""
        with self._lock:
            asked = {"cursors": dict(self._cursors), "max_rows": MAX_ROWS, "wait_s": wait_s}
            pages = self._link.post(f"{self._path}/pull", asked)["pages"]
            now = time.monotonic()
            moved = {page["channel"]: page["through"] for page in pages if self._take(page, now)}
            if moved:
                self._link.post(f"{self._path}/ack", {"positions": moved})
            return len(pages) < len(self._cursors) or not all(page["end"] for page in pages)

    def _take(self, page: Mapping[str, Any], now: float) -> bool:
        """Count a page, and put its channel last in the next request: every channel has its turn."""
        channel = page["channel"]
        if self._is_counting:
            self._count(channel, page, now)
        before, self._cursors[channel] = self._cursors.pop(channel), page["through"]
        return bool(before != page["through"])

    def _count(self, channel: str, page: Mapping[str, Any], now: float) -> None:
        tally, gap = self.tallies[channel], page["gap"]
        tally.add(page["results"], now, partial(self._audience.reached, channel))
        if gap is not None:
            tally.gaps.append(f"results after {gap['after']} were no longer kept ({gap['reason']})")
