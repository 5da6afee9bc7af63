"""What the demonstration will do: the city scenario, compressed, with most people there when it begins.

The last tenth log in during the run, one after the other, and subscribe then; the run's end is left free of them, so
that they all get something.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from tocsin.errors import BadArgument
from tocsin.scenarios.city import CHANNELS, DEMO, Intent, Residents, Scenario, Storms, records_of
from tocsin.scenarios.recording import Event

SPEED = 10.0  # five minutes of the city in half a minute, periods of 1, 2 and 3 s: about 55 reports a second
LOGINS = (0.1, 0.8)  # when those log in who come during the run, as parts of it


@dataclass(frozen=True)
class Plan:
    """``people`` move through the city, and the first of them ask for ``subscriptions``."""

    seconds: float
    people: int
    subscriptions: int
    start: datetime
    seed: int = 1
    connected: int = 60  # so many of the people have real connections
    storms: bool = False
    all_channels: bool = False
    goes_on: bool = False  # after ``seconds``, without end

    def __post_init__(self) -> None:
        for name, value in (("--seconds", self.seconds), ("--people", self.people)):
            if not value > 0:
                raise BadArgument(name, "a number above 0", value)
        if not self.subscriptions > 0:
            raise BadArgument("--subscriptions", "a number above 0", self.subscriptions)
        if self.connected < 0:
            raise BadArgument("--connected", "a number from 0 on", self.connected)

    @cached_property
    def scenario(self) -> Scenario:
        people, city_s = self.people, self.seconds * SPEED
        return Scenario(
            seed=self.seed,
            people=people,
            subscribers=people,
            speed=SPEED,
            channel_names=self.channels,
            timetable=Residents(LOGINS[0] * city_s, LOGINS[1] * city_s),
            subscriptions=self.subscriptions,
            storms=Storms() if self.storms else None,
            start=self.start,
        )

    @property
    def intents(self) -> tuple[Intent, ...]:
        """The subscriptions; people ask for about five each, and there must be enough of them."""
        return self.scenario.intents

    @property
    def channels(self) -> tuple[str, ...]:
        """Four of the city's seven, unless all are asked for: two cores are soon busy with more."""
        return tuple(channel.name for channel in CHANNELS) if self.all_channels else DEMO

    @cached_property
    def present(self) -> tuple[Intent, ...]:
        """The subscriptions of those who are there from the beginning."""
        wishes = (act for act in self.scenario.acts() if act.kind == "subscribe" and act.t == 0)
        return tuple(Intent(**act.payload) for act in wishes)

    @cached_property
    def connected_people(self) -> frozenset[str]:
        """Spread evenly over all who subscribe, so that some of them come during the run."""
        people = list(dict.fromkeys(intent.user for intent in self.intents))
        count = min(self.connected, len(people))
        return frozenset(people[number * len(people) // count] for number in range(count)) if count else frozenset()

    def events(self) -> Iterator[Event]:
        """What brings records, and what those ask for who come during the run, in order of time."""
        for event in self.scenario.events(math.inf if self.goes_on else self.seconds):
            if records_of(event) is not None or (event.kind == "subscribe" and event.t > 0):
                yield event
