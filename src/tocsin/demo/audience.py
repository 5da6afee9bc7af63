"""Who has subscribed: what stands behind each backend subscription, and how many people.

People who want the same share a backend subscription. A subscription gets the results after the position
with which it was acknowledged, so that a row reaches as many people as had subscribed before it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tocsin.demo.link import Link
from tocsin.scenarios.city import Intent

NAME = "demo"  # of the broker
BATCH = 5_000  # subscriptions in one request


class Backends:
    """Of one channel: the arguments of each, and how many reports had been sent when the first one asked."""

    def __init__(self) -> None:
        self.arguments: dict[int, Mapping[str, Any]] = {}
        self.since: dict[int, int] = {}
        self.positions: dict[int, list[str]] = {}  # of its subscriptions, in order

    @property
    def subscriptions(self) -> int:
        return sum(map(len, self.positions.values()))

    @property
    def counts(self) -> dict[str, int]:
        """As the cluster counts them, without those of others."""
        return {"subscriptions": self.subscriptions, "backends": len(self.positions)}

    def add(self, number: int, arguments: Mapping[str, Any], position: str, reports: int) -> None:
        self.arguments.setdefault(number, arguments)
        self.since.setdefault(number, reports)
        self.positions.setdefault(number, []).append(position)


class Audience:
    """Subscribes; may be asked from other threads, which wait while a request is under way.

    ``arrive`` hears of those who come during the run, when their subscriptions stand.
    """

    def __init__(
        self,
        link: Link,
        channels: Iterable[str],
        broker: str = NAME,
        arrive: Callable[[Sequence[Intent]], None] = lambda intents: None,
    ) -> None:
        self._link, self._broker, self._arrive = link, broker, arrive
        self._lock = threading.Lock()  # a result may overtake the answer to the request that it is for
        self.backends = {channel: Backends() for channel in channels}
        self.late = 0  # subscriptions that were made during the run

    def subscribe(self, intents: Sequence[Intent], reports: int = 0, *, is_late: bool = False) -> None:
        """Make these subscriptions; so many ``reports`` had been sent before."""
        for channel, arguments in requests(intents):
            wanted = [{"arguments": one} for one in arguments]
            body = {"channel": channel, "broker": self._broker, "subscriptions": wanted}
            with self._lock:
                made = self._link.post("/subscriptions", body)["subscriptions"]
                for one, its in zip(made, arguments, strict=True):
                    self.backends[channel].add(one["backend"], its, one["position"], reports)
        if is_late:
            self.late += len(intents)
            self._arrive(intents)

    def reached(self, channel: str, backends: Iterable[int], position: str) -> int:
        """How many subscriptions a result at ``position`` goes to."""
        with self._lock:
            held = self.backends[channel].positions
            return sum(bisect_left(held.get(number, ()), position) for number in backends)


def requests(intents: Sequence[Intent]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The channel and the arguments of each request for subscriptions."""
    ordered = sorted(intents, key=lambda intent: intent.channel)
    for channel, group in groupby(ordered, key=lambda intent: intent.channel):
        arguments: list[Mapping[str, Any]] = [intent.args for intent in group]
        for first in range(0, len(arguments), BATCH):
            yield channel, arguments[first : first + BATCH]
