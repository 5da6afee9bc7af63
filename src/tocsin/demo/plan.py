"""What the demonstration will do: the city, its subscriptions, and a check that they can be had.

Most people are there when it begins. The last tenth log in during the run, one after the other, and
subscribe then; the run's end is left free of them, so that they all get something.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby

from tocsin.errors import BadArgument
from tocsin.scenarios.city import DEMO, Intent, Scenario, records_of
from tocsin.scenarios.recording import Event

SPEED = 30.0  # half an hour of the city in a minute: about 170 reports a second
LATE = 0.1  # share of the people who log in during the run
LOGINS = (0.1, 0.8)  # when they do, as parts of the run


@dataclass(frozen=True)
class Plan:
    """``people`` move through the city, and the first of them ask for ``subscriptions``."""

    seconds: float
    people: int
    subscriptions: int
    start: datetime
    seed: int = 1
    connected: int = 60  # so many of the people have real connections

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
        people = self.people
        return Scenario(
            seed=self.seed, people=people, subscribers=people, speed=SPEED, channel_names=DEMO, start=self.start
        )

    @cached_property
    def intents(self) -> tuple[Intent, ...]:
        """The subscriptions; people ask for about five each, and there must be enough of them."""
        wanted = self.scenario.intents
        if len(wanted) < self.subscriptions:
            raise BadArgument(
                "--subscriptions", f"at most {len(wanted)}, which {self.people} people ask for", self.subscriptions
            )
        return wanted[: self.subscriptions]

    @property
    def channels(self) -> tuple[str, ...]:
        return DEMO

    @property
    def present(self) -> tuple[Intent, ...]:
        """The subscriptions of those who are there from the beginning."""
        return self.intents[: len(self.intents) - sum(map(len, self._arriving))]

    @cached_property
    def connected_people(self) -> frozenset[str]:
        """Spread evenly over all who subscribe, so that some of them come during the run."""
        people = list(dict.fromkeys(intent.user for intent in self.intents))
        count = min(self.connected, len(people))
        return frozenset(people[number * len(people) // count] for number in range(count)) if count else frozenset()

    def events(self) -> Iterator[Event]:
        """What brings records, and the logins with what they ask for, in order of time."""
        records = (event for event in self.scenario.events(self.seconds) if records_of(event) is not None)
        return heapq.merge(records, self._logins(), key=lambda event: event.t)

    def _logins(self) -> Iterator[Event]:
        first, last = LOGINS
        for number, wanted in enumerate(self._arriving):
            at = first + (last - first) * number / len(self._arriving)
            yield Event(self.seconds * at, "login", wanted)

    @cached_property
    def _arriving(self) -> list[tuple[Intent, ...]]:
        """What each of those wants who log in during the run; intents are ordered by person."""
        people = [tuple(group) for _, group in groupby(self.intents, key=lambda intent: intent.user)]
        return people[len(people) - round(LATE * len(people)) :]
