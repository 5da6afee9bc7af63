"""The emergency city as one stream of timed events, which drives demo, tests and benchmarks alike.

``speed`` compresses time: a run at speed 30 plays half an hour in a minute. Event times, timestamps
and ``until_s`` are seconds of the run; the other durations and the rate are of the scenario. People
report their positions every second of the run, whatever the speed. A longer run begins with the same
events as a shorter one. A recording says of itself that its map is generated.

========== ===================================================== ===============
kind       payload                                               dataset
========== ===================================================== ===============
shelters   records, once, at 0                                   Shelters
locations  records, every second                                 UserLocations
report     one record                                            Reports
login      ``user``                                              –
subscribe  ``user``, ``channel``, ``args`` (also unsubscribe)    –
logout     ``user``                                              –
========== ===================================================== ===============
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from tocsin.errors import BadArgument
from tocsin.scenarios import recording
from tocsin.scenarios.city.audience import SHARING, Intent, subscribers, user_name
from tocsin.scenarios.city.channels import DATASETS, SHORTEST_PERIOD_S, Channel, channels
from tocsin.scenarios.city.emergencies import REPORTS_PER_S, Publishers, timestamp
from tocsin.scenarios.city.mobility import Mobility
from tocsin.scenarios.city.storms import Storms
from tocsin.scenarios.city.terrain import Size
from tocsin.scenarios.city.timetable import Acts, Timetable
from tocsin.scenarios.city.world import City
from tocsin.scenarios.recording import Event
from tocsin.scenarios.seeding import stream

MAP = "generated from the seed; no real city"
_DATASET = {"shelters": "Shelters", "locations": "UserLocations", "report": "Reports"}


@dataclass(frozen=True)
class Scenario:
    """Settings of a run; the subscribers are the first of the people. No channel names means all seven.

    ``subscriptions`` is how many of what they want they ask for; all of it, where it is left out.
    """

    seed: int = 1
    people: int = 400
    subscribers: int = 400
    speed: float = 1.0
    reports_per_s: float = REPORTS_PER_S
    channel_names: tuple[str, ...] = ()
    shortest_period_s: float = SHORTEST_PERIOD_S
    sharing: float = SHARING
    drivers: float = 0.3
    timetable: Acts = field(default_factory=Timetable)
    subscriptions: int | None = None
    storms: Storms | None = None
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    size_m: Size = (10_000, 8_000)
    districts: int = 12
    shelters: int = 200

    def __post_init__(self) -> None:
        if not self.speed > 0:
            raise BadArgument("speed", "a number above 0", self.speed)
        if not 0 <= self.subscribers <= self.people:
            raise BadArgument("subscribers", f"from 0 to the number of people, {self.people:,}", self.subscribers)

    @cached_property
    def city(self) -> City:
        return City.generate(self.seed, self.size_m, self.districts, self.shelters)

    @cached_property
    def intents(self) -> tuple[Intent, ...]:
        """Every subscription that will be asked for, user by user."""
        wanted = tuple(subscribers(self.city, self.subscribers, self.seed, self.channels, self.sharing))
        if (self.subscriptions or 0) > len(wanted):
            expected = f"at most {len(wanted)}, which {self.subscribers} people ask for"
            raise BadArgument("subscriptions", expected, self.subscriptions)
        return wanted[: self.subscriptions]

    @property
    def channels(self) -> tuple[Channel, ...]:
        return channels(*self.channel_names)

    def statements(self, *, periodic: bool = False) -> list[str]:
        """What to execute before the events: the datasets, then the channels at this speed."""
        created = (
            channel.statement(self.speed, periodic=periodic, shortest_period_s=self.shortest_period_s)
            for channel in self.channels
        )
        return [*DATASETS, *created]

    def events(self, until_s: float) -> Iterator[Event]:
        """Everything that happens before ``until_s``, in order of time."""
        parts = (self._shelters(), self._locations(), self.acts(), self._reports())
        merged = heapq.merge(*parts, key=lambda event: event.t)
        return takewhile(lambda event: event.t < until_s, merged)

    def acts(self) -> Iterator[Event]:
        """What the subscribers do."""
        users = [user_name(i) for i in range(self.subscribers)]
        for t, kind, payload in self.timetable.events(users, self.intents, stream(self.seed, "timetable")):
            yield Event(t / self.speed, str(kind), payload)

    def record(self, path: str | Path, until_s: float) -> int:
        """Write the events to a file; how many they were."""
        about = asdict(self) | {"start": self.start.isoformat(), "until_s": until_s, "scenario": "city", "map": MAP}
        return recording.record(path, self.events(until_s), about)

    @staticmethod
    def replay(path: str | Path) -> Iterator[Event]:
        """The events of a recording."""
        return recording.replay(path)

    def _shelters(self) -> Iterator[Event]:
        yield Event(0.0, "shelters", [shelter.record() for shelter in self.city.shelters])

    def _locations(self) -> Iterator[Event]:
        mobility = Mobility.people(self.city, self.people, self.seed, self.drivers)
        users = [user_name(i) for i in range(self.people)]
        for second in count():
            x, y = mobility.step(self.speed) if second else mobility.positions()
            at = timestamp(self.start, second)
            spots = zip(users, x.round(1).tolist(), y.round(1).tolist(), strict=True)
            yield Event(float(second), "locations", [{"user": u, "x": px, "y": py, "at": at} for u, px, py in spots])

    def _reports(self) -> Iterator[Event]:
        publishers = Publishers(self.city, self.seed, self.start, self.speed, self.reports_per_s, self.storms)
        for t, report in publishers.reports():
            yield Event(t, "report", report)


def records_of(event: Event) -> tuple[str, list[dict[str, Any]]] | None:
    """The dataset and the records that an event brings, if it brings any."""
    dataset = _DATASET.get(event.kind)
    if dataset is None:
        return None
    return dataset, event.payload if isinstance(event.payload, list) else [event.payload]
