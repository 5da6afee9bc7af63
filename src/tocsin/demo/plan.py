"""What the demonstration will do: the city, its subscriptions, and a check that they can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Any

from tocsin.errors import BadArgument
from tocsin.scenarios.city import DEMO, Intent, Scenario, records_of
from tocsin.scenarios.recording import Event

SPEED = 30.0  # half an hour of the city in a minute: about 170 reports a second
BATCH = 5_000  # subscriptions in one request


@dataclass(frozen=True)
class Plan:
    """``people`` move through the city, and the first of them ask for ``subscriptions``."""

    seconds: float
    people: int
    subscriptions: int
    start: datetime
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value in (("--seconds", self.seconds), ("--people", self.people)):
            if not value > 0:
                raise BadArgument(name, "a number above 0", value)
        if not self.subscriptions > 0:
            raise BadArgument("--subscriptions", "a number above 0", self.subscriptions)

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

    def requests(self) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
        """The channel and the arguments of each request for subscriptions."""
        ordered = sorted(self.intents, key=lambda intent: DEMO.index(intent.channel))
        for channel, group in groupby(ordered, key=lambda intent: intent.channel):
            arguments: list[Mapping[str, Any]] = [intent.args for intent in group]
            for first in range(0, len(arguments), BATCH):
                yield channel, arguments[first : first + BATCH]

    def events(self) -> Iterator[Event]:
        """What brings records, in order of time."""
        return (event for event in self.scenario.events(self.seconds) if records_of(event) is not None)
