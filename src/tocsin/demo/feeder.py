"""Sends the city's records and logs its people in as their time comes; remembers when each report was accepted.

Events are made ahead of time by a thread of their own, so that making them does not hold up sending.
Every batch has an idempotency key: one that had to be repeated is not stored twice. Records say that they are of the
moment at which they are sent: the time of the run stands still while the machine is too busy.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from tocsin.demo.audience import Audience
from tocsin.demo.link import Link
from tocsin.demo.pace import Pace
from tocsin.demo.work import Work
from tocsin.errors import BadRecords
from tocsin.scenarios.city import Intent, records_of
from tocsin.scenarios.city.emergencies import timestamp
from tocsin.scenarios.recording import Event

STEP_S = 0.1
MAX_BATCH = 2_000
WARM_UP_S = 1.0  # of the run, sent at once
PATIENCE = 2.0  # the feed ends at the latest after so many times its length
_AHEAD, _AHEAD_S = 20_000, 60.0  # events, and seconds of the run, that are made before they are asked for
_ORDER = ("Shelters", "UserLocations", "Reports")  # what reports are joined with goes first


Show = Callable[[float, Mapping[str, Sequence[Mapping[str, Any]]]], None]


class Ahead:
    """Events made before they are needed, in order."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._made: queue.Queue[Event | None] = queue.Queue(_AHEAD)
        self._next: Event | None = None
        self.is_over = False
        self._asked_s = 0.0
        self._work = Work("city", lambda stopping: self._make(events, stopping))
        self._work.start()

    def until(self, run_s: float) -> Iterator[Event]:
        """The events up to this time that were not given yet; waits for them if they are not made."""
        self._asked_s = max(self._asked_s, run_s)
        while not self.is_over:
            event = self._next or self._take()
            self.is_over = event is None
            if event is None or event.t > run_s:
                self._next = event
                return
            self._next = None
            yield event

    def stop(self) -> None:
        self._work.stop()

    def _take(self) -> Event | None:
        while True:
            try:
                return self._made.get(timeout=0.5)
            except queue.Empty:
                if self._work.is_done and self._made.empty():
                    return None

    def _make(self, events: Iterator[Event], stopping: threading.Event) -> None:
        for event in events:
            while event.t > self._asked_s + _AHEAD_S and not stopping.wait(0.2):
                pass  # a moment of many people is one event: a full queue of these would be too much to hold
            self._put(event, stopping)
            if stopping.is_set():
                return
        self._put(None, stopping)

    def _put(self, event: Event | None, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                self._made.put(event, timeout=0.2)
                return
            except queue.Full:
                continue


class Feeder:
    """``lag_s`` tells how far the channels are behind at the moment; ``show`` sees what is sent, and when."""

    def __init__(
        self,
        link: Link,
        ahead: Ahead,
        audience: Audience,
        seconds: float,
        lag_s: Callable[[], float],
        show: Show = lambda t, records: None,
    ) -> None:
        self._link, self._ahead, self._audience, self._seconds, self._lag_s = link, ahead, audience, seconds, lag_s
        self._show = show
        self.pace = Pace()
        self.sent: Counter[str] = Counter()  # records by dataset
        self.reports: list[dict[str, Any]] = []
        self.accepted_at: dict[str, float] = {}  # by report, without those of the warm-up
        self.warm_up_reports = 0
        self.last_seq = 0  # of the reports
        self.batches = 0
        self.is_cut = False
        self._is_counting = True

    def warm_up(self) -> None:
        """Send the first records; what they take is not measured, for Spark compiles and loads meanwhile."""
        self.pace.run_s = min(WARM_UP_S, self._seconds)
        self._send_until(self.pace.run_s)
        self.warm_up_reports = len(self.reports)
        self.accepted_at.clear()

    def run(self, stopping: threading.Event) -> None:
        """Send everything in its time; ends early if the machine cannot keep up at all."""
        began = last = time.monotonic()
        while not stopping.wait(STEP_S) and not self._ahead.is_over:
            now = time.monotonic()
            self._send_until(self.pace.advance(now - last, self._lag_s()))
            last = now
            if self.pace.run_s >= self._seconds:
                return
            if now - began > PATIENCE * self._seconds:
                self.is_cut = True
                return

    def live(self, stopping: threading.Event) -> None:
        """Go on after ``run``, as long as there are events, and remember nothing of what is sent."""
        self._seconds, self._is_counting = math.inf, False
        self.reports, self.accepted_at = [], {}
        self.run(stopping)

    def _send_until(self, run_s: float) -> None:
        waiting: dict[str, list[dict[str, Any]]] = {name: [] for name in _ORDER}
        wanted: list[Intent] = []
        for event in self._ahead.until(min(run_s, self._seconds)):
            if found := records_of(event):
                waiting[found[0]].extend(found[1])
            else:
                wanted.append(Intent(**event.payload))
        for dataset, records in waiting.items():
            for first in range(0, len(records), MAX_BATCH):
                self._send(dataset, records[first : first + MAX_BATCH])
        self._show(run_s, waiting)
        self._audience.subscribe(wanted, len(self.reports), is_late=True)

    def _send(self, dataset: str, records: list[dict[str, Any]]) -> None:
        self.batches += 1
        sent = timestamp(datetime.now(UTC), 0.0)
        dated = [record | {"at": sent} if "at" in record else record for record in records]
        receipt = self._link.append(dataset, msgspec.json.Encoder().encode_lines(dated), f"demo-{self.batches}")
        now = time.monotonic()
        if receipt["rejected"]:
            reason = receipt["problems"][0]["reason"]
            raise BadRecords(f"{receipt['rejected']} records of {dataset} were rejected, the first because: {reason}")
        self.sent[dataset] += receipt["accepted"]
        if dataset == "Reports":
            self.last_seq = receipt["last"]
        if dataset == "Reports" and self._is_counting:
            self.accepted_at.update((record["report_id"], now) for record in records)
            self.reports.extend(records)
