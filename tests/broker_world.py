"""A whole broker in one event loop, with upstreams and a directory that live in memory."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import uvloop
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tocsin.broker.app import create_app
from tocsin.broker.core import Core, Keys, Upstreams
from tocsin.broker.hub import Hub
from tocsin.broker.ports import Attached, Delivery, Page
from tocsin.broker.residents import LocalResidents
from tocsin.broker.server import BrokerServer, make_hub
from tocsin.config import Broker
from tocsin.errors import NotFound, Refused, TocsinError, Unavailable
from tocsin.protocol.codec import encoded, from_broker
from tocsin.protocol.coordination import Placement
from tocsin.protocol.messages import SUBPROTOCOL, FromBroker, FromClient, Gap, Hole, Login, Wanted
from tocsin.protocol.targets import Target, TopicTarget, topic_stream
from tocsin.tokens import Principal, mint, verify

SECRET = b"a secret of more than thirty-two bytes"
START = "0000"


def place(number: int) -> str:
    return f"{number:04d}"


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario under uvloop, as the broker does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 30))  # type: ignore[arg-type]


async def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to hold")


async def closed(client: Client) -> int | None:
    """The code with which the broker ends the connection; what comes before is read and dropped."""
    try:
        while True:
            await asyncio.wait_for(client.socket.recv(), 10)
    except ConnectionClosed:
        return client.socket.close_code


@dataclass
class MemoryTopics:
    """Topics whose whole past is kept, save what ``forgotten`` says; positions count from 1.

    Other brokers may have come further: as far as ``elsewhere``.
    """

    delivery: Delivery | None = None
    log: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    elsewhere: str = START
    attached: list[str] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    page_items: int = 3
    is_away: bool = False
    may_attach: asyncio.Event | None = None
    refused: dict[str, TocsinError] = field(default_factory=dict)
    may_record: asyncio.Event | None = None

    def hold_attaching(self) -> asyncio.Event:
        """Nothing is attached until the event is set."""
        self.may_attach = asyncio.Event()
        return self.may_attach

    async def check(self, target: Target, principal: Principal, position: str | None = None) -> None:
        if target.name == "missing":
            raise NotFound("topic", target.name)
        if not principal.may("topic", target.name):
            raise Refused(f"following {target.name!r} needs the capability 'topic:{target.name}'")

    async def attach(self, target: Target) -> Attached:
        await (self.may_attach.wait() if self.may_attach else asyncio.sleep(0))
        if target.name in self.refused:
            raise self.refused[target.name]
        self.attached.append(target.name)
        past = self.log.setdefault(topic_stream(target.name), [])
        return Attached(topic_stream(target.name), past[-1][0] if past else START)

    async def detach(self, target: Target) -> None:
        await asyncio.sleep(0)
        self.detached.append(target.name)

    async def replay(self, stream: str, after: str, through: str) -> Page:
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("the past is away")
        lost = self.forgotten.get(stream, 0)
        gone = [p for p, _ in self.log[stream][:lost] if after < p <= through]
        rest = [(p, b) for p, b in self.log[stream][lost:] if after < p <= through]
        items, is_end = rest[: self.page_items], len(rest) <= self.page_items
        gap = Gap(stream, [Hole(after, gone[-1], len(gone))], "retention") if gone else None
        last = items[-1][0] if items else gone[-1] if gone else after
        return Page(items, through if is_end else last, is_end, gap)

    async def is_beyond(self, stream: str, position: str) -> bool:
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("the owner is away")
        return position > max([self.elsewhere, *(p for p, _ in self.log[stream])])

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        if not principal.may("publish", topic):
            raise Refused(f"publishing {topic!r} needs the capability 'publish:{topic}'")
        return self.put(topic, payload)

    async def records(self, dataset: str, records: Sequence[bytes], principal: Principal) -> tuple[int, int]:
        if self.may_record is not None:
            await self.may_record.wait()
        return len(records), 0

    async def noticed(self, body: bytes, principal: Principal) -> None:
        self.log.setdefault("noticed", []).append((principal.subject, body))

    def put(self, topic: str, payload: bytes) -> str:
        assert self.delivery is not None
        past = self.log.setdefault(topic_stream(topic), [])
        position = place(int(past[-1][0]) + 1 if past else 1)
        past.append((position, payload))
        self.delivery.deliver(topic_stream(topic), [(position, payload)])
        return position


@dataclass
class MemoryDirectory:
    broker: str
    is_away: bool = False
    placed: dict[str, Placement] = field(default_factory=dict)
    kept: dict[tuple[str, str], Wanted] = field(default_factory=dict)
    online: set[tuple[str, str]] = field(default_factory=set)
    unasked: set[str] = field(default_factory=set)
    acks: list[tuple[str, str, str]] = field(default_factory=list)
    backs: list[tuple[str, str, str]] = field(default_factory=list)
    arrivals: list[tuple[str, int]] = field(default_factory=list)
    is_drained: bool = False
    may_drop: asyncio.Event | None = None
    may_answer: asyncio.Event | None = None
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    refused: str | None = None

    async def where(self, user: str) -> Placement | None:
        if self.is_away:
            return None
        return self.placed.get(user) or Placement(user, self.broker, "", 1, "", "test")

    async def keep(self, user: str, wanted: Wanted) -> None:
        if self.may_answer is not None:
            await self.may_answer.wait()
        self.kept[user, wanted.id] = wanted

    async def drop(self, user: str, id: str) -> None:
        if self.may_drop is not None:
            await self.may_drop.wait()
        self.kept.pop((user, id), None)

    async def kept_of(self, user: str, ids: Collection[str]) -> Mapping[str, Wanted]:
        self.asked.append((user, tuple(ids)))
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.is_away:
            raise Unavailable("the coordinator is away")
        return {wanted.id: wanted for (name, _), wanted in self.kept.items() if name == user}

    async def said(self, user: str, ids: Collection[str]) -> None:
        return

    def logged_in(self, user: str, session: str, *, is_admitted_unasked: bool) -> None:
        self.online.add((user, session))
        if is_admitted_unasked:
            self.unasked.add(user)

    def logged_out(self, user: str, session: str) -> None:
        self.online.discard((user, session))

    def acknowledged(self, user: str, id: str, position: str, *, is_back: bool = False) -> None:
        (self.backs if is_back else self.acks).append((user, id, position))

    def arrived(self, user: str, version: int) -> None:
        self.arrivals.append((user, version))

    def drained(self) -> bool:
        self.is_drained = True
        return not self.is_away


@dataclass
class World:
    settings: Broker
    hub: Hub
    topics: MemoryTopics
    directory: MemoryDirectory
    core: Core
    residents: LocalResidents
    server: BrokerServer

    @asynccontextmanager
    async def client(self, **options: object) -> AsyncIterator[Client]:
        url = self.server.url.replace("http", "ws", 1) + "/connect"
        chosen = {
            "subprotocols": [SUBPROTOCOL],
            "compression": None,
            "ping_interval": None,
            "max_size": None,
            **options,
        }
        async with connect(url, **chosen) as socket:  # type: ignore[arg-type]
            yield Client(socket)


@dataclass
class Client:
    socket: ClientConnection

    async def ask(self, message: FromClient) -> FromBroker:
        await self.say(message)
        return await self.next()

    async def say(self, message: FromClient) -> None:
        await self.socket.send(encoded(message).decode())

    async def next(self) -> FromBroker:
        return from_broker(await asyncio.wait_for(self.socket.recv(), 10))

    async def login(
        self, user: str = "ann", *wanted: Wanted, capabilities: Sequence[str] = ("topic:*", "publish:*")
    ) -> FromBroker:
        return await self.ask(Login(1, token_of(user, capabilities), subscriptions=wanted))


def token_of(user: str, capabilities: Sequence[str] = ("topic:*", "publish:*"), ttl_s: float = 600) -> str:
    return mint(SECRET, user, capabilities, ttl_s)


def topic(name: str, id: str | None = None, position: str | None = None) -> Wanted:
    return Wanted(id or name, TopicTarget(name), position)


@asynccontextmanager
async def world(
    settings: Broker | None = None,
    origins: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    **changed: object,
) -> AsyncIterator[World]:
    chosen = replace(settings or Broker(port=0, tick=0.0, retry_pause=0.01), **changed)  # type: ignore[arg-type]
    hub, topics, directory = make_hub(chosen), MemoryTopics(), MemoryDirectory(chosen.name)
    topics.delivery = hub
    keys = Keys(lambda token: verify(token, SECRET), SECRET)
    core = Core(chosen, hub, Upstreams(topics, topics, topics, topics), directory, keys)
    server = BrokerServer(core, create_app(core, topics, origins=origins), origins=origins, tls=tls)
    await server.start()
    try:
        yield World(chosen, hub, topics, directory, core, LocalResidents(core), server)
    finally:
        await server.stop()
