"""The subscriptions that a client holds: what each asks for, its stream, and what waits in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tocsin.errors import AlreadyExists, NotFound
from tocsin.protocol.inbox import Inbox, Item
from tocsin.protocol.messages import Gap, Notification, Standing, Wanted
from tocsin.protocol.targets import Target


@dataclass(slots=True, eq=False, weakref_slot=True)
class Held:
    """``key`` is the application's, while it waits for the first answer.

    ``refused_at`` is since when brokers refuse it, ``refusals`` how often they did.
    """

    id: str
    target: Target
    inbox: Inbox
    key: Any = None
    retry_at: float | None = None
    refusals: int = 0
    refused_at: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it stood before, in this session or in an earlier one."""
        return self.inbox.position is not None

    def refused(self, now: float) -> float:
        """Since when it is."""
        self.refusals += 1
        self.refused_at = now if self.refused_at is None else self.refused_at
        return self.refused_at

    def stand(self, standing: Standing) -> None:
        self.retry_at, self.refusals, self.refused_at = None, 0, None
        self.inbox.stand(standing)

    def wanted(self) -> Wanted:
        return Wanted(self.id, self.target, self.inbox.position)


class Holdings:
    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items, self._max_bytes = max_items, max_bytes
        self._held: dict[str, Held] = {}
        self._by_stream: dict[str, list[Held]] = {}
        self._acked: dict[str, str] = {}

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._held

    def find(self, subscription: str) -> Held | None:
        return self._held.get(subscription)

    def add(self, subscription: str, target: Target, position: str | None, key: Any) -> Held:
        if subscription in self._held:
            raise AlreadyExists("subscription", subscription, "take its notifications, or give the second another id")
        inbox = Inbox(subscription, self._max_items, self._max_bytes, position)
        held = self._held[subscription] = Held(subscription, target, inbox, key)
        return held

    def remove(self, subscription: str) -> Held:
        if subscription not in self._held:
            raise NotFound("subscription", subscription, self._held)
        held = self._held.pop(subscription)
        self._index()
        return held

    def stand(self, held: Held, standing: Standing) -> None:
        """A broker holds the subscription."""
        is_new = held.inbox.stream != standing.stream
        held.stand(standing)
        if is_new:
            self._index()

    def deliver(self, notification: Notification, standing: Collection[Held]) -> Iterator[str]:
        """Which subscriptions have something new, of those ``standing`` where it came from."""
        for held in self._by_stream.get(notification.stream, ()):
            if held in standing and held.inbox.deliver(notification):
                yield held.id

    def announce(self, gap: Gap, standing: Collection[Held]) -> Iterator[str]:
        """As ``deliver``."""
        for held in self._by_stream.get(gap.stream, ()):
            if held in standing and held.inbox.announce(gap):
                yield held.id

    def take(self, subscription: str) -> Item | None:
        held = self._held.get(subscription)
        return held.inbox.take() if held else None

    def news(self) -> dict[str, str]:
        """By stream, what every subscription to it has taken, where that was not told yet.

        Not where the stream has never been: it will be there one day, and then nobody would have taken it.
        """
        found = {}
        for stream, holders in self._by_stream.items():
            taken = min("" if held.inbox.is_turned else held.inbox.taken or "" for held in holders)
            if taken and self._acked.get(stream) != taken:
                found[stream] = self._acked[stream] = taken
        return found

    def repeat_news(self) -> None:
        """Tell everything again: what was told may not have been heard."""
        self._acked.clear()

    def positions(self) -> Mapping[str, str]:
        """By subscription, up to where the application has taken it."""
        return {held.id: held.inbox.taken for held in self if held.inbox.taken is not None}

    def _index(self) -> None:
        self._by_stream = {}
        for held in self._held.values():
            if held.inbox.stream is not None:
                self._by_stream.setdefault(held.inbox.stream, []).append(held)
        self._acked = {stream: taken for stream, taken in self._acked.items() if stream in self._by_stream}
