"""Streams of topics: stamped here where this broker has the log, followed at the owner otherwise.

Who has the log stamps, and nobody else. The topology says who should have it; a broker that should and has not
asks all others for it before it stamps anything (``handover``), and begins a new epoch only where nobody had
one. A broker that has a log that another should have goes on stamping until it is asked for it, and sees to it
that it is asked, by following the topic there. So a topic moves without a hole while both live, and its subscribers
are told a gap where the owner died.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from tocsin.broker.ports import Attached, Delivery, Page, is_peer
from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.handover import Handover, HistoryPage, Known, PeerClient, State, Taker
from tocsin.broker.upstream.inlet import Inlet
from tocsin.broker.upstream.peers import NotSettled, PeerEvents, PeerLink, PeerOptions
from tocsin.broker.upstream.topics import Bounds, Log, Missed, new_epoch, owner_of
from tocsin.clock import Clock
from tocsin.errors import BadArgument, LimitExceeded, Refused, TocsinError, Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import Gap
from tocsin.protocol.targets import Target, TopicTarget, check_topic, topic_stream
from tocsin.tokens import Principal

log = logging.getLogger(__name__)
_UNKNOWN_S = 0.01  # how often to look whether the hub knows a stream


@dataclass(frozen=True, slots=True)
class TopicOptions:
    bounds: Bounds
    max_topics: int
    idle_s: float
    settle_s: float
    leaving_s: float
    page_bytes: int
    peer: PeerOptions


@dataclass(slots=True)
class _Owned:
    log: Log
    used_at: float


class TopicUpstream:
    """``me`` gives this broker's name and address; they are known when it listens."""

    def __init__(
        self,
        me: Callable[[], BrokerInfo],
        delivery: Delivery,
        token: Callable[[], str | None],
        clock: Clock,
        options: TopicOptions,
    ) -> None:
        self._me, self._delivery, self._token, self._clock, self._options = me, delivery, token, clock, options
        self._client = PeerClient(token, options.peer.timeout_s, options.peer.parallel, options.peer.tls)
        self._inlet = Inlet(delivery, self._resync)
        self._brokers: dict[str, BrokerInfo] | None = None
        self._leaving: dict[str, tuple[BrokerInfo, float]] = {}
        self._owned: dict[str, _Owned] = {}
        self._given: dict[str, BrokerInfo] = {}  # handed over, and not yet followed there
        self._interest: set[str] = set()
        self._looks: set[str] = set()  # topics whose stream the hub is about to know
        self._links: dict[str, PeerLink] = {}
        self._settling: dict[str, asyncio.Task[None]] = {}
        self._claims: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._tasks = Tasks("topics")

    def start(self) -> None:
        self._tasks.spawn(self._forget_idle())

    async def stop(self) -> None:
        await self._tasks.stop()
        await asyncio.gather(*(link.close() for link in self._links.values()), return_exceptions=True)
        await self._client.close()

    @property
    def is_relieved(self) -> bool:
        """Whether this broker, which leaves, has nothing any more that another should take."""
        others = (self._brokers or {}).keys() - {self._me().name}
        return not self._owned or not others

    def set_topology(self, brokers: Sequence[BrokerInfo]) -> None:
        """Who lives. Topics whose owner changed are taken, given or followed elsewhere."""
        now = {broker.name: broker for broker in brokers}
        self._note_leaving(now)
        self._brokers = now
        for topic in [topic for topic, taker in self._given.items() if taker.name not in now]:
            self._give_up(topic)
        for name, link in list(self._links.items()):
            if now.get(name, link.peer) != link.peer or (name not in now and not link.topics):
                self._tasks.spawn(self._links.pop(name).close())
        for topic in {*self._interest, *self._owned}:
            self._settle_later(topic)

    @property
    def known(self) -> Known:
        return Known(None if self._brokers is None else tuple(self._brokers.values()))

    async def ask_around(self, others: Iterable[BrokerInfo]) -> None:
        """Learn who lives from other brokers, unless the coordinator tells it first: what most of them were told."""
        told = Counter(known.brokers for known in await self._client.known(others) if known.brokers is not None)
        if self._brokers is None and told:
            me = self._me()
            ((brokers, _),) = told.most_common(1)
            self.set_topology([me if broker.name == me.name else broker for broker in brokers])

    def _note_leaving(self, now: Mapping[str, BrokerInfo]) -> None:
        """Who is no longer among the living may still hand over, for a while."""
        moment = self._clock.monotonic()
        until = moment + self._options.leaving_s
        gone = {name: (broker, until) for name, broker in (self._brokers or {}).items() if name not in now}
        known = {**self._leaving, **gone}.items()
        self._leaving = {name: told for name, told in known if name not in now and told[1] > moment}

    def _give_up(self, topic: str) -> None:
        """Whoever took the log is gone with what it stamped: what is left here must not be stamped on."""
        self._given.pop(topic, None)
        self._owned.pop(topic, None)

    # --- Upstream -----------------------------------------------------------------------------------------

    async def check(self, target: Target, principal: Principal) -> None:
        topic = _topic(target)
        if is_peer(principal):
            await self._stamps_here(topic)
        elif not principal.may("topic", topic):
            raise Refused(f"the token does not allow following the topic {topic!r}")

    async def attach(self, target: Target) -> Attached:
        topic = _topic(target)
        stream = topic_stream(topic)
        self._interest.add(topic)
        try:
            position = await self._begin(topic)
        except BaseException:
            if self._delivery.position(stream) is None:
                self._interest.discard(topic)
            raise
        return Attached(stream, self._delivery.position(stream) or position)

    async def detach(self, target: Target) -> None:
        topic = _topic(target)
        self._interest.discard(topic)
        self._inlet.drop(topic_stream(topic))
        for link in list(self._links.values()):
            if topic in link.topics:
                await link.unfollow(topic)

    async def replay(self, stream: str, after: str, through: str) -> Page:
        topic = stream.removeprefix("topic:")
        page = await self.history(topic, after, through)
        if page is None:
            page = await self._client.history(topic, self._owner(topic), after, through)
        gap = Gap(stream, [page.hole], page.reason) if page.hole else None
        return Page([(at, bytes(payload)) for at, payload in page.items], page.through, page.through >= through, gap)

    # --- Publisher ----------------------------------------------------------------------------------------

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        check_topic(topic)
        if is_peer(principal):
            await self._stamps_here(topic)
        elif not principal.may("publish", topic):
            raise Refused(f"the token does not allow publishing to the topic {topic!r}")
        return await self._until_settled(lambda: self._publish(topic, payload))

    async def _publish(self, topic: str, payload: bytes) -> str:
        owned = await self._log(topic)
        if owned is None:
            return await self._link(self._owner(topic)).publish(topic, payload)
        return self._stamp(topic, owned, payload)

    def _stamp(self, topic: str, owned: _Owned, payload: bytes) -> str:
        stream, before = topic_stream(topic), owned.log.position
        owned.used_at = self._clock.monotonic()
        position = owned.log.append(payload)
        if self._delivery.position(stream) == before:
            self._delivery.deliver(stream, [(position, payload)])
        else:
            self._catch_up(topic)
        return position

    # --- for peers ----------------------------------------------------------------------------------------

    def hand_over(self, topic: str, taker: Taker) -> Handover:
        """Give the log away: from now on ``taker`` stamps. Until it is followed there, it is given again if asked."""
        owned = self._owned.get(topic)
        seen = self._delivery.position(topic_stream(topic))
        if owned is None or taker.broker == self._me().name:
            return Handover(None, seen)
        self._given[topic] = BrokerInfo(taker.broker, taker.url)
        self._settle_later(topic)
        state = State(owned.log.epoch, owned.log.offset, [msgspec.Raw(payload) for payload in owned.log.history])
        return Handover(state, seen)

    async def history(self, topic: str, after: str, through: str) -> HistoryPage | None:
        """A piece of the past; None where another broker has it."""
        owned = await self._log(topic)
        return self._page(owned.log.since(after), after, through) if owned else None

    def _page(self, missed: Missed, after: str, through: str) -> HistoryPage:
        items: list[tuple[str, msgspec.Raw]] = []
        size, at = 0, missed.hole.through if missed.hole else after
        for position, payload in missed.items:
            if position > through:
                break
            if items and size + len(payload) > self._options.page_bytes:
                return HistoryPage(items, at, missed.hole, missed.reason)
            items.append((position, msgspec.Raw(payload)))
            size, at = size + len(payload), position
        return HistoryPage(items, max(at, through), missed.hole, missed.reason)

    async def _stamps_here(self, topic: str) -> None:
        """Unavailable to a peer that takes this broker for an owner that it is not."""
        if await self._log(topic) is None:
            raise Unavailable(f"the topic {topic!r} is stamped elsewhere")

    # --- having the log, or following it --------------------------------------------------------------------

    async def _log(self, topic: str) -> _Owned | None:
        """The log, if this broker stamps; taken over first where it should and does not."""
        if topic in self._given:
            return None
        if topic not in self._owned and self._owner(topic).name == self._me().name:
            async with self._claims.setdefault(topic, asyncio.Lock()):
                if topic not in self._owned:
                    await self._claim(topic)
        return self._owned.get(topic)

    async def _claim(self, topic: str) -> None:
        if len(self._owned) >= self._options.max_topics:
            raise LimitExceeded("topics that one broker owns", self._options.max_topics)
        leaving = {name: broker for name, (broker, until) in self._leaving.items() if until > self._clock.monotonic()}
        others = [b for b in {**leaving, **(self._brokers or {})}.values() if b.name != self._me().name]
        answers = await self._client.take_over(topic, self._me(), others)
        seen = [*(answer.seen for answer in answers), self._delivery.position(topic_stream(topic))]
        logs = [self._taken(answer.log) for answer in answers if answer.log]
        best = max(logs, key=lambda one: one.position, default=None)
        if best is None or any(position is not None and position > best.position for position in seen):
            seen += [one.position for one in logs]
            best = Log(self._options.bounds, new_epoch(int(self._clock.now() * 1000), seen))
        self._owned[topic] = _Owned(best, self._clock.monotonic())
        self._catch_up(topic)

    def _taken(self, state: State) -> Log:
        return Log(self._options.bounds, state.epoch, state.offset, [bytes(payload) for payload in state.history])

    def _catch_up(self, topic: str) -> None:
        """Give the hub what it lacks of a log that is here."""
        stream, owned = topic_stream(topic), self._owned.get(topic)
        position = self._delivery.position(stream)
        if owned is None or topic in self._given:
            return
        if position is None:
            if topic in self._interest and topic not in self._looks:
                self._looks.add(topic)
                asyncio.get_running_loop().call_later(_UNKNOWN_S, self._look_again, topic)
            return
        missed = owned.log.since(min(position, owned.log.position))
        if missed.hole:
            self._delivery.gap(stream, [missed.hole], missed.reason)
        self._delivery.deliver(stream, missed.items)

    def _look_again(self, topic: str) -> None:
        self._looks.discard(topic)
        self._catch_up(topic)

    async def _begin(self, topic: str) -> str:
        """Where following ``topic`` begins, once it is stamped here or followed there."""

        async def begin() -> str:
            owned = await self._log(topic)
            return owned.log.position if owned else await self._follow(topic)

        return await self._until_settled(begin)

    async def _follow(self, topic: str) -> str:
        """Follow ``topic`` at its owner, from where the hub or the log here stands."""
        owned, owner = self._owned.get(topic), self._owner(topic)
        link = self._link(owner)
        position = self._delivery.position(topic_stream(topic)) or (owned.log.position if owned else None)
        is_followed = topic in link.topics and owned is None
        begins = position if is_followed and position else await link.follow(topic, position)
        if self._owned.get(topic) is owned:
            self._give_up(topic)
        for other in list(self._links.values()):
            if topic in other.topics and (other is not link or topic not in self._interest):
                self._tasks.spawn(other.unfollow(topic))
        return begins

    async def _until_settled(self, step: Callable[[], Coroutine[Any, Any, str]]) -> str:
        """Try until it is done or ``settle_s`` have passed, for brokers do not learn the topology at once.

        What was sent to a peer and not answered is not tried again: it may have been done.
        """
        deadline = self._clock.monotonic() + self._options.settle_s
        backoff = Backoff(self._options.peer.backoff_min_s, self._options.peer.backoff_max_s)
        while True:
            try:
                return await step()
            except NotSettled:
                if self._clock.monotonic() >= deadline:
                    raise
            await backoff.pause()

    def _settle_later(self, topic: str) -> None:
        running = self._settling.get(topic)
        if running is None or running.done():
            task = self._tasks.spawn(self._settle(topic))
            self._settling[topic] = task
            task.add_done_callback(lambda done: self._settled(topic, done))

    def _settled(self, topic: str, done: asyncio.Task[None]) -> None:
        if self._settling.get(topic) is done:
            del self._settling[topic]

    async def _settle(self, topic: str) -> None:
        """Bring a topic that is followed or stamped here to where the topology wants it."""
        backoff = Backoff(self._options.peer.backoff_min_s, self._options.peer.backoff_max_s)
        while topic in self._interest or topic in self._owned:
            try:
                if topic in self._given or self._owner(topic).name != self._me().name:
                    await self._follow(topic)
                else:
                    await self._log(topic)
                    self._catch_up(topic)
                return
            except TocsinError as problem:
                log.info("the topic %s is not settled yet: %s", topic, problem)
                self._doubt(topic)
            await backoff.pause()

    def _doubt(self, topic: str) -> None:
        """Whoever took the log does not have it: if another should, it was handed on."""
        taker, brokers = self._given.get(topic), self._brokers
        if taker is not None and brokers and owner_of(topic, brokers) != taker.name:
            self._give_up(topic)

    # --- small things -------------------------------------------------------------------------------------

    def _owner(self, topic: str) -> BrokerInfo:
        if topic in self._given:
            return self._given[topic]
        brokers = self._brokers
        name = owner_of(topic, brokers) if brokers else None
        if brokers is None or name is None:
            raise NotSettled("the brokers are not known yet")
        return brokers[name]

    def _link(self, owner: BrokerInfo) -> PeerLink:
        link = self._links.get(owner.name)
        if link is None or link.peer != owner:
            events = PeerEvents(self._inlet.take, self._delivery.position, self._settle_later)
            link = self._links[owner.name] = PeerLink(owner, self._token, events, self._options.peer)
        return link

    def _resync(self, stream: str) -> None:
        for link in self._links.values():
            if stream.removeprefix("topic:") in link.topics:
                self._tasks.spawn(link.resync())

    async def _forget_idle(self) -> None:
        """Topics that nobody follows or has published to for long are forgotten."""
        while True:
            await asyncio.sleep(self._options.idle_s / 4)
            edge = self._clock.monotonic() - self._options.idle_s
            for topic, owned in list(self._owned.items()):
                if owned.used_at < edge and self._delivery.position(topic_stream(topic)) is None:
                    del self._owned[topic]


def _topic(target: Target) -> str:
    if not isinstance(target, TopicTarget):
        raise BadArgument("target", "a topic", target)
    return check_topic(target.name)
