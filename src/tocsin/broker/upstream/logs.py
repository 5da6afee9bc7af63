"""The logs that this broker has: taken from whoever had them, or begun anew, stamped, and forgotten when idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from weakref import WeakValueDictionary

from tocsin.broker.upstream.handover import PeerClient, State
from tocsin.broker.upstream.topics import Bounds, Log, new_epoch
from tocsin.clock import Clock
from tocsin.errors import LimitExceeded
from tocsin.protocol.coordination import BrokerInfo

Others = Callable[[], Sequence[BrokerInfo]]


class Logs:
    def __init__(self, client: PeerClient, clock: Clock, bounds: Bounds, max_topics: int) -> None:
        self._client, self._clock, self._bounds, self._max_topics = client, clock, bounds, max_topics
        self._logs: dict[str, Log] = {}
        self._used_at: dict[str, float] = {}
        self._claims: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def topics(self) -> Collection[str]:
        return self._logs.keys()

    def get(self, topic: str) -> Log | None:
        return self._logs.get(topic)

    def drop(self, topic: str) -> None:
        self._logs.pop(topic, None)
        self._used_at.pop(topic, None)

    def stamp(self, topic: str, payload: bytes) -> str:
        self._used_at[topic] = self._clock.monotonic()
        return self._logs[topic].append(payload)

    async def claim(self, topic: str, me: BrokerInfo, others: Others, seen: Callable[[], str | None]) -> bool:
        """Have the log of ``topic``: the newest that one of ``others`` had. Whether it is new here.

        A new epoch begins where nobody had one, or where more was ``seen``, here or there, than is left.
        """
        async with self._claims.setdefault(topic, asyncio.Lock()):
            if topic in self._logs:
                return False
            if len(self._logs) >= self._max_topics:
                raise LimitExceeded("topics that one broker owns", self._max_topics)
            self._logs[topic] = await self._found(topic, me, others(), seen)
            self._used_at[topic] = self._clock.monotonic()
            return True

    def begin(self, topic: str, seen: Sequence[str]) -> None:
        """A new epoch of ``topic``, above everything that was ``seen``."""
        self._logs[topic] = self._new(seen)

    def forget_idle(self, idle_s: float, is_followed: Callable[[str], bool]) -> None:
        """Logs of topics that nobody follows or has published to for so long."""
        edge = self._clock.monotonic() - idle_s
        for topic in [topic for topic, used_at in self._used_at.items() if used_at < edge and not is_followed(topic)]:
            self.drop(topic)

    async def _found(
        self, topic: str, me: BrokerInfo, others: Sequence[BrokerInfo], seen: Callable[[], str | None]
    ) -> Log:
        answers = await self._client.take_over(topic, me, others)
        logs = [self._taken(answer.log) for answer in answers if answer.log]
        best = max(logs, key=lambda one: one.position, default=None)
        heard = [position for position in (seen(), *(answer.seen for answer in answers)) if position is not None]
        if best is not None and all(position <= best.position for position in heard):
            return best
        heard += [one.position for one in logs]
        return self._new(heard)

    def _new(self, seen: Sequence[str]) -> Log:
        return Log(self._bounds, new_epoch(int(self._clock.now() * 1000), seen))

    def _taken(self, state: State) -> Log:
        return Log(self._bounds, state.epoch, state.offset, [bytes(payload) for payload in state.history])
