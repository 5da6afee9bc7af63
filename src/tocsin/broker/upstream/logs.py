"""The logs that this broker has: taken from whoever had them, or begun anew, stamped, given away, forgotten when idle.

A log is given away once. Whoever took it may have stamped since, and nobody here knows what, so that one who asks after
it is told where the log stood and begins a new epoch. The log stays until it is followed there, for its position.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

import msgspec

from tocsin.broker.upstream.handover import Batch, Handover, PeerClient, State
from tocsin.broker.upstream.topics import Bounds, Log, new_epoch
from tocsin.clock import Clock
from tocsin.errors import LimitExceeded
from tocsin.protocol.coordination import BrokerInfo

Others = Callable[[], Sequence[BrokerInfo]]
Seen = Callable[[str], str | None]


class Logs:
    """``seen`` tells how far a topic was seen here, whoever stamped it."""

    def __init__(self, client: PeerClient, clock: Clock, bounds: Bounds, max_topics: int, seen: Seen) -> None:
        self._client, self._clock, self._bounds, self._max_topics = client, clock, bounds, max_topics
        self._seen = seen
        self._logs: dict[str, Log] = {}
        self._takers: dict[str, BrokerInfo] = {}
        self._used_at: dict[str, float] = {}
        self._claims: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def topics(self) -> Collection[str]:
        return self._logs.keys()

    @property
    def takers(self) -> Mapping[str, BrokerInfo]:
        """To whom logs were given that are not yet followed there."""
        return self._takers

    @property
    def stamped(self) -> Collection[str]:
        """Topics whose log is here and was not given away."""
        return self._logs.keys() - self._takers.keys()

    def get(self, topic: str) -> Log | None:
        return self._logs.get(topic)

    def drop(self, topic: str) -> None:
        self._logs.pop(topic, None)
        self._takers.pop(topic, None)
        self._used_at.pop(topic, None)

    def stamp(self, topic: str, payload: bytes) -> str:
        self._used_at[topic] = self._clock.monotonic()
        return self._logs[topic].append(payload)

    def begin(self, topic: str, seen: Iterable[str]) -> None:
        """A new epoch of ``topic``, above everything that was ``seen``."""
        self._logs[topic] = self._new(seen)

    def forget_idle(self, idle_s: float, is_followed: Callable[[str], bool]) -> None:
        """Logs of topics that nobody follows or has published to for so long."""
        edge = self._clock.monotonic() - idle_s
        for topic in [topic for topic, used_at in self._used_at.items() if used_at < edge and not is_followed(topic)]:
            self.drop(topic)

    # --- giving -------------------------------------------------------------------------------------------

    def give(self, asked: Batch, page_bytes: int) -> Sequence[Handover]:
        """Answers for the first of the topics asked for, as many as fit in ``page_bytes``, one at least."""
        answers: list[Handover] = []
        room = page_bytes
        for topic in asked.topics:
            log = self._logs.get(topic)
            room -= log.size_bytes if log else 0
            if answers and room < 0:
                break
            answers.append(self._given(topic, BrokerInfo(asked.broker, asked.url)))
        return answers

    def _given(self, topic: str, taker: BrokerInfo) -> Handover:
        log, seen = self._logs.get(topic), self._seen(topic)
        if log is None:
            return Handover(None, seen)
        is_first = topic not in self._takers
        self._takers[topic] = taker
        if not is_first:
            return Handover(None, max(log.position, seen or ""))
        return Handover(State(log.epoch, log.offset, [msgspec.Raw(payload) for payload in log.history]), seen)

    # --- taking -------------------------------------------------------------------------------------------

    async def claim(self, topic: str, me: BrokerInfo, others: Others, may_begin: bool = True) -> bool:
        """Have the log of ``topic``: the newest that one of ``others`` had. Whether it is new here.

        A new epoch begins where more was seen, here or there, than is left, and, if it ``may_begin``, where nobody had
        one.
        """
        async with self._claims.setdefault(topic, asyncio.Lock()):
            if topic in self._logs:
                return False
            if len(self._logs) >= self._max_topics:
                raise LimitExceeded("topics that one broker owns", self._max_topics)
            answers = await self._client.take_over(topic, me, others())
            if may_begin or any(answer.log for answer in answers):
                self._logs[topic] = self._found(topic, answers)
                self._used_at[topic] = self._clock.monotonic()
            return topic in self._logs

    async def fetched(self, topic: str) -> None:
        """Wait until nobody fetches the log of ``topic``."""
        claim = self._claims.get(topic)
        if claim is not None:
            async with claim:
                pass

    def _found(self, topic: str, answers: Sequence[Handover]) -> Log:
        given = [answer.log for answer in answers if answer.log]
        best = max(given, key=lambda one: one.position, default=None)
        heard = [at for at in (self._seen(topic), *(answer.seen for answer in answers)) if at is not None]
        if best is not None and all(position <= best.position for position in heard):
            return Log(self._bounds, best.epoch, best.offset, [bytes(payload) for payload in best.history])
        return self._new([*heard, *(one.position for one in given)])

    def _new(self, seen: Iterable[str]) -> Log:
        return Log(self._bounds, new_epoch(int(self._clock.now() * 1000), seen))
