"""What brokers ask each other over HTTP: topics' logs that change hands, pieces of its history, and who lives."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

import httpx
import msgspec

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.gathering import Gathering
from tocsin.broker.upstream.topics import Missed, Stamp
from tocsin.errors import BadArgument, TocsinError, Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import Hole
from tocsin.unanswered import UNANSWERED

T = TypeVar("T")

log = logging.getLogger(__name__)


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker, and topics: those that it takes over, or that it leaves to who hears this."""

    broker: str
    url: str
    topics: Sequence[str] = ()


class State(msgspec.Struct, frozen=True):
    """A log: ``offset`` is the last publication's, ``history`` the payloads up to it that are kept."""

    epoch: int
    offset: int
    history: Sequence[msgspec.Raw]

    @property
    def position(self) -> str:
        return str(Stamp(self.epoch, self.offset))


class Handover(msgspec.Struct, frozen=True):
    """The log, where the asked broker stamped the topic, and the last position of it that it has seen."""

    log: State | None
    seen: str | None


class Handed(msgspec.Struct, frozen=True):
    """For the first of the topics that were asked for, as many as fit; the others are to be asked for again."""

    topics: Sequence[Handover]


class HistoryPage(msgspec.Struct, frozen=True):
    """(after, through] of a topic, as much as fits; ``hole`` lies before the items."""

    items: Sequence[tuple[str, msgspec.Raw]]
    through: str
    hole: Hole | None = None
    reason: str = ""


def page_of(missed: Missed, after: str, through: str, page_bytes: int) -> HistoryPage:
    """As much of (after, through] as ``page_bytes`` allow, one item at least."""
    items: list[tuple[str, msgspec.Raw]] = []
    size, at = 0, missed.hole.through if missed.hole else after
    for position, payload in missed.items:
        if position > through:
            break
        if items and size + len(payload) > page_bytes:
            return HistoryPage(items, at, missed.hole, missed.reason)
        items.append((position, msgspec.Raw(payload)))
        size, at = size + len(payload), position
    return HistoryPage(items, max(at, through), missed.hole, missed.reason)


class Known(msgspec.Struct, frozen=True):
    """Who lives, as a broker was last told; None where it was not."""

    brokers: tuple[BrokerInfo, ...] | None


class PeerClient:
    """``tls`` says whom to trust; None for whom the system trusts. A request asks for ``batch`` topics at most.

    When brokers come and go, thousands of topics are asked for at once. ``parallel`` requests are under way; the others
    wait before their time runs, for one that is given up while it waits loses what it would have saved.
    """

    def __init__(
        self,
        token: Callable[[], str | None],
        timeout_s: float,
        parallel: int,
        batch: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._token, self._places, self._batch = token, asyncio.Semaphore(parallel), batch
        self._http = httpx.AsyncClient(timeout=timeout_s, trust_env=False, verify=tls or True)
        self._tasks = Tasks("handover")
        self._wanted: WeakValueDictionary[BrokerInfo, Gathering[str, Handover]] = WeakValueDictionary()

    async def close(self) -> None:
        await self._tasks.stop()
        await self._http.aclose()

    async def take_over(self, topic: str, me: BrokerInfo, others: Iterable[BrokerInfo]) -> list[Handover]:
        """What the others had of ``topic``; those that do not answer had nothing that can be saved."""
        asking = (self._wanted_of(other, me).ask(topic) for other in others)
        answers = await asyncio.gather(*asking, return_exceptions=True)
        for problem in answers:
            if isinstance(problem, Exception) and not isinstance(problem, TocsinError):
                log.error("taking over %s failed unexpectedly", topic, exc_info=problem)
        return [answer for answer in answers if isinstance(answer, Handover)]

    def _wanted_of(self, other: BrokerInfo, me: BrokerInfo) -> Gathering[str, Handover]:
        async def ask(topics: Sequence[str]) -> Sequence[Handover]:
            body = msgspec.json.encode(Batch(me.name, me.url, topics))
            return (await self._ask(Handed, "POST", other, "/handover", body)).topics

        return self._wanted.setdefault(other, Gathering(ask, self._batch, self._tasks))

    async def leave(
        self, me: BrokerInfo, others: Iterable[BrokerInfo], offers: Mapping[str, Sequence[str]]
    ) -> dict[str, Known]:
        """Say that this broker goes, and offer topics by name; who counts then by what each one knows that answers."""
        path = f"/brokers/{quote(me.name, safe='')}/leaving"

        def word(other: BrokerInfo) -> bytes:
            return msgspec.json.encode(Batch(me.name, me.url, offers.get(other.name, ())[: self._batch]))

        answers = await self._ask_all(Known, "POST", others, path, word)
        return {other.name: known for other, known in answers}

    async def known(self, others: Iterable[BrokerInfo]) -> list[tuple[BrokerInfo, Known]]:
        """Who lives by what each of the others was told that answers."""
        return await self._ask_all(Known, "GET", others, "/topology", lambda _: None)

    async def history(self, topic: str, owner: BrokerInfo, after: str, through: str) -> HistoryPage:
        path = f"/topics/{quote(topic, safe='')}/history?after={quote(after)}&through={quote(through)}"
        return await self._ask(HistoryPage, "GET", owner, path)

    async def _ask_all(
        self,
        kind: type[T],
        method: str,
        peers: Iterable[BrokerInfo],
        path: str,
        body: Callable[[BrokerInfo], bytes | None],
    ) -> list[tuple[BrokerInfo, T]]:
        """The answers of those that give one."""
        asked = list(peers)
        asking = (self._ask(kind, method, peer, path, body(peer)) for peer in asked)
        answers = await asyncio.gather(*asking, return_exceptions=True)
        return [(peer, answer) for peer, answer in zip(asked, answers, strict=True) if isinstance(answer, kind)]

    async def _ask(self, kind: type[T], method: str, peer: BrokerInfo, path: str, body: bytes | None = None) -> T:
        token = self._token()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            async with self._places:
                answer = await self._http.request(method, peer.url + path, content=body, headers=headers)
            if answer.status_code == 422:
                raise BadArgument("position", "one of this topic", answer.text[:200])
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=kind)
        except (*UNANSWERED, msgspec.DecodeError) as problem:
            raise Unavailable(f"the broker {peer.name!r} does not answer: {problem}") from None
