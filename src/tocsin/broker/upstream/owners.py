"""Streams of topics: stamped here where this broker has the log, followed at the owner otherwise.

Who has the log stamps, and nobody else, and follows nobody. The topology says who should have it; a broker that should
and has not asks all others for it before it stamps anything (``handover``), and begins a new epoch only where nobody
had one. A broker that has a log that another should have goes on stamping until it is asked for it, and sees to it
that it is asked, by following the topic there. So a topic moves without a hole while both live, and its subscribers
are told a gap where the owner died. A broker that leaves is no exception: it tells the others itself that it should
have no topic any more, where the coordinator does not (``leaving``), and one that stays keeps what a dead one should
have.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tocsin.broker.ports import Attached, Delivery, Page, is_peer
from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.handover import Batch, Handed, HistoryPage, Known, PeerClient, page_of
from tocsin.broker.upstream.inlet import Inlet
from tocsin.broker.upstream.leaving import Leaving
from tocsin.broker.upstream.logs import Logs
from tocsin.broker.upstream.members import Members
from tocsin.broker.upstream.peers import NotSettled, PeerEvents, PeerLink, PeerOptions
from tocsin.broker.upstream.settling import Settling
from tocsin.broker.upstream.topics import Bounds, Log
from tocsin.clock import Clock
from tocsin.errors import BadArgument, Refused, Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import Gap
from tocsin.protocol.targets import Target, TopicTarget, check_topic, stream_topic, topic_stream
from tocsin.tokens import Principal

_UNKNOWN_S = 0.01  # how often to look whether the hub knows a stream


@dataclass(frozen=True, slots=True)
class TopicOptions:
    bounds: Bounds
    max_topics: int
    idle_s: float
    settle_s: float
    leaving_s: float
    page_bytes: int
    handover_topics: int
    peer: PeerOptions


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
        self._client = PeerClient(
            token, options.peer.timeout_s, options.peer.parallel, options.handover_topics, options.peer.tls
        )
        self._inlet = Inlet(delivery, self._resync)
        self._members = Members(me, clock, options.leaving_s)
        self._logs = Logs(self._client, clock, options.bounds, options.max_topics, self._stands)
        self._leaving = Leaving(me, self._members, self._client, lambda: self._logs.stamped, self._share_out)
        self._interest: set[str] = set()
        self._looks: set[str] = set()  # topics whose stream the hub is about to know
        self._links: dict[str, PeerLink] = {}
        self._tasks = Tasks("topics")
        self._settling = Settling(self._tasks, clock, self._backoff, self._bring, self._doubt, self._is_wanted)

    def start(self) -> None:
        self._tasks.spawn(self._forget_idle())

    async def stop(self) -> None:
        await self._tasks.stop()
        await asyncio.gather(*(link.close() for link in self._links.values()), return_exceptions=True)
        await self._client.close()

    def leave(self) -> None:
        """This broker goes: see that others take what it has."""
        self._tasks.spawn(self._leaving.run(self._backoff()))

    @property
    def is_relieved(self) -> bool:
        """Whether this broker, which leaves, has nothing any more that another should take, and they all know it."""
        return not self._members.staying or (not self._logs.topics and self._leaving.is_known)

    def set_topology(self, brokers: Sequence[BrokerInfo], leaving: Sequence[BrokerInfo] = ()) -> None:
        """Who lives, and who leaves. Topics whose owner changed are taken, given or followed elsewhere."""
        self._members.tell(brokers, leaving)
        self._leaving.counted_anew()
        self._share_out()

    def leaves(self, leaver: Batch) -> Known:
        """Another broker says that it goes, and which topics are to be kept here. Who counts from now on."""
        giver = BrokerInfo(leaver.broker, leaver.url)
        if self._members.hear(giver):
            self._share_out()
        for topic in leaver.topics if not self._members.is_leaving else ():
            self._tasks.spawn(self._keep(topic, giver))
        return self.known

    def _share_out(self) -> None:
        now = self._members.living
        for topic in [topic for topic, taker in self._logs.takers.items() if taker.name not in now]:
            self._logs.drop(topic)  # gone with what was stamped there: what is left here must not be stamped on
        for name, link in list(self._links.items()):
            if now.get(name, link.peer) != link.peer or (name not in now and not link.topics):
                self._tasks.spawn(self._links.pop(name).close())
        for topic in {*self._interest, *self._logs.topics}:
            self._settling.later(topic)

    @property
    def known(self) -> Known:
        return Known(self._members.known)

    async def ask_around(self, others: Iterable[BrokerInfo]) -> None:
        """Learn who lives from other brokers, unless the coordinator tells it first: what most of them were told.

        One that answers and does not count for them leaves, and may have logs.
        """
        answers = await self._client.known(others)
        told = Counter(known.brokers for _, known in answers if known.brokers is not None)
        if self._members.known is None and told:
            me = self._me()
            ((brokers, _),) = told.most_common(1)
            living = [me if broker.name == me.name else broker for broker in brokers]
            self.set_topology(living, [broker for broker, _ in answers])

    # --- Upstream -----------------------------------------------------------------------------------------

    async def check(self, target: Target, principal: Principal, position: str | None = None) -> None:
        topic = _topic(target)
        if is_peer(principal):
            self._outrun(topic, await self._stamps_here(topic), position)
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
        topic = stream_topic(stream)
        page = await self.history(topic, after, through)
        if page is None:
            page = await self._client.history(topic, self._owner(topic), after, through)
        gap = Gap(stream, [page.hole], page.reason) if page.hole else None
        return Page([(at, bytes(payload)) for at, payload in page.items], page.through, page.through >= through, gap)

    async def is_beyond(self, stream: str, position: str) -> bool:
        """As the owner says, which has stamped everything that there is."""
        try:
            await self.replay(stream, position, position)
        except BadArgument:
            return True
        return False

    # --- Publisher ----------------------------------------------------------------------------------------

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        check_topic(topic)
        if is_peer(principal):
            await self._stamps_here(topic)
        elif not principal.may("publish", topic):
            raise Refused(f"the token does not allow publishing to the topic {topic!r}")
        return await self._settling.until_done(lambda: self._publish(topic, payload), self._options.settle_s)

    async def _publish(self, topic: str, payload: bytes) -> str:
        log = await self._log(topic)
        if log is None:
            return await self._link(self._owner(topic)).publish(topic, payload)
        return self._stamp(topic, log, payload)

    def _stamp(self, topic: str, log: Log, payload: bytes) -> str:
        stream, before = topic_stream(topic), log.position
        position = self._logs.stamp(topic, payload)
        if self._delivery.position(stream) == before:
            self._delivery.deliver(stream, [(position, payload)])
        else:
            self._catch_up(topic)
        return position

    # --- for peers ----------------------------------------------------------------------------------------

    def hand_over(self, asked: Batch) -> Handed:
        """Give logs away: from now on who asks stamps. For the first of the topics, as many as fit in an answer."""
        if asked.broker == self._me().name:
            raise BadArgument("broker", "another one", asked.broker)
        answers = self._logs.give(asked, self._options.page_bytes)
        for topic in self._logs.takers.keys() & asked.topics:
            self._settling.later(topic)
        return Handed(answers)

    async def history(self, topic: str, after: str, through: str) -> HistoryPage | None:
        """A piece of the past; None where another broker has it."""
        log = await self._log(topic)
        return page_of(log.since(after), after, through, self._options.page_bytes) if log else None

    async def _stamps_here(self, topic: str) -> Log:
        """The log; Unavailable to a peer that takes this broker for an owner that it is not."""
        log = await self._log(topic)
        if log is None:
            raise Unavailable(f"the topic {topic!r} is stamped elsewhere")
        return log

    def _outrun(self, topic: str, log: Log, position: str | None) -> None:
        """A peer has been beyond our log: another broker stamped while we were taken for dead. A new epoch begins."""
        if position is not None and position > log.position:
            self._logs.begin(topic, [position])
            self._catch_up(topic)

    # --- having the log, or following it --------------------------------------------------------------------

    async def _log(self, topic: str) -> Log | None:
        """The log, if this broker stamps; taken over first where it should and does not."""
        if topic not in self._logs.topics:
            if self._owner(topic).name == self._me().name:
                await self._tasks.finish(self._claim(topic))  # or a log would be lost with who waits for it
            else:
                await self._logs.fetched(topic)
        return None if topic in self._logs.takers else self._logs.get(topic)

    async def _claim(self, topic: str) -> None:
        if await self._logs.claim(topic, self._me(), lambda: self._members.others):
            self._has(topic)
            if self._owner(topic).name != self._me().name:
                self._settling.later(topic)

    async def _keep(self, topic: str, giver: BrokerInfo) -> None:
        """Have a log that another should have, which does not answer, until that one asks for it."""
        if await self._logs.claim(topic, self._me(), lambda: [giver], may_begin=False):
            self._has(topic)
            self._settling.later(topic)

    def _has(self, topic: str) -> None:
        """The log is here, with everything that whoever had it could still send: nobody is followed any more.

        Who gave it follows here now, and would get back what it is sent.
        """
        self._catch_up(topic)
        for link in self._links.values():
            if topic in link.topics:
                self._tasks.spawn(link.unfollow(topic))

    def _stands(self, topic: str) -> str | None:
        return self._delivery.position(topic_stream(topic))

    def _catch_up(self, topic: str) -> None:
        """Give the hub what it lacks of a log that is here."""
        stream, log = topic_stream(topic), self._logs.get(topic)
        position = self._delivery.position(stream)
        if log is None or topic in self._logs.takers:
            return
        if position is None:
            if topic in self._interest and topic not in self._looks:
                self._looks.add(topic)
                asyncio.get_running_loop().call_later(_UNKNOWN_S, self._look_again, topic)
            return
        missed = log.since(min(position, log.position))
        if missed.hole:
            self._delivery.gap(stream, [missed.hole], missed.reason)
        self._delivery.deliver(stream, missed.items)

    def _look_again(self, topic: str) -> None:
        self._looks.discard(topic)
        self._catch_up(topic)

    async def _begin(self, topic: str) -> str:
        """Where following ``topic`` begins, once it is stamped here or followed there."""

        async def begin() -> str:
            log = await self._log(topic)
            return log.position if log else await self._follow(topic)

        return await self._settling.until_done(begin, self._options.settle_s)

    async def _follow(self, topic: str) -> str:
        """Follow ``topic`` at its owner, from where the hub or the log here stands."""
        log, owner = self._logs.get(topic), self._owner(topic)
        link = self._link(owner)
        position = self._delivery.position(topic_stream(topic)) or (log.position if log else None)
        is_followed = topic in link.topics and log is None
        begins = position if is_followed and position else await link.follow(topic, position)
        if self._logs.get(topic) not in (None, log):
            self._tasks.spawn(link.unfollow(topic))
            raise NotSettled(f"the log of the topic {topic!r} came here meanwhile")
        if self._owner(topic).name != owner.name:
            self._tasks.spawn(link.unfollow(topic))
            raise NotSettled(f"another broker stamps the topic {topic!r} now")
        self._logs.drop(topic)
        for other in list(self._links.values()):
            if topic in other.topics and (other is not link or topic not in self._interest):
                self._tasks.spawn(other.unfollow(topic))
        return begins

    async def _bring(self, topic: str) -> None:
        """Bring a topic that is followed or stamped here to where the topology wants it."""
        if topic in self._logs.takers or self._owner(topic).name != self._me().name:
            await self._follow(topic)
        elif await self._log(topic):
            self._has(topic)

    def _is_wanted(self, topic: str) -> bool:
        return topic in self._interest or topic in self._logs.topics

    def _doubt(self, topic: str) -> None:
        """Whoever took the log does not have it: if another should, it was handed on."""
        taker, owner = self._logs.takers.get(topic), self._members.owner(topic)
        if taker is not None and owner is not None and owner.name != taker.name:
            self._logs.drop(topic)

    # --- small things -------------------------------------------------------------------------------------

    def _owner(self, topic: str) -> BrokerInfo:
        owner = self._logs.takers.get(topic) or self._members.owner(topic)
        if owner is None:
            raise NotSettled("the brokers are not known yet")
        return owner

    def _backoff(self) -> Backoff:
        return Backoff(self._options.peer.backoff_min_s, self._options.peer.backoff_max_s)

    def _link(self, owner: BrokerInfo) -> PeerLink:
        link = self._links.get(owner.name)
        if link is None or link.peer != owner:
            events = PeerEvents(self._inlet.take, self._delivery.position, self._settling.later)
            link = self._links[owner.name] = PeerLink(owner, self._token, events, self._options.peer)
        return link

    def _resync(self, stream: str) -> None:
        for link in self._links.values():
            if stream_topic(stream) in link.topics:
                self._tasks.spawn(link.resync())

    async def _forget_idle(self) -> None:
        """Topics that nobody follows or has published to for long are forgotten."""
        while True:
            await asyncio.sleep(self._options.idle_s / 4)
            self._logs.forget_idle(self._options.idle_s, lambda topic: self._stands(topic) is not None)


def _topic(target: Target) -> str:
    if not isinstance(target, TopicTarget):
        raise BadArgument("target", "a topic", target)
    return check_topic(target.name)
