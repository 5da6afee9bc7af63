"""Whole brokers on loopback sockets in one event loop, and a subscriber that keeps to the protocol's rules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tocsin.broker.app import create_app
from tocsin.broker.core import Core, Keys
from tocsin.broker.residents import LocalResidents
from tocsin.broker.server import BrokerServer, make_hub
from tocsin.broker.upstream.assembly import Sources
from tocsin.broker.upstream.routes import MESSAGES, peer_routes
from tocsin.config import load
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import SUBPROTOCOL
from tocsin.tokens import mint, verify

SECRET = b"a secret that is long enough for HS256, surely"
TOKEN = mint(SECRET, "ann", ["topic:*", "publish:*"], 3600)
WAIT_S = 20.0


class LocalBroker:
    """One broker; ``stop`` ends it in order, ``die`` as if it were killed."""

    def __init__(self, name: str, port: int = 0, **settings: str) -> None:
        overrides = {"broker.name": name, "broker.port": port, "upstream.settle": "1s", "upstream.timeout": "2s"}
        config = load(overrides=overrides | {k.replace("__", "."): v for k, v in settings.items()})
        hub = make_hub(config.broker)
        self.sources = Sources(config, SECRET, hub)
        keys = Keys(lambda token: verify(token, SECRET), SECRET)
        self.core = Core(config.broker, hub, self.sources.upstreams, self.sources.directory, keys)
        residents = LocalResidents(self.core)
        app = create_app(self.core, self.sources.notices, [peer_routes(self.sources.topics)], MESSAGES)
        self.server, self._residents = BrokerServer(self.core, app), residents
        self.sources.url = self.server.url

    @property
    def info(self) -> BrokerInfo:
        return self.sources.me()

    async def start(self) -> None:
        await self.server.start()
        self.sources.start(self._residents)

    async def stop(self) -> None:
        await self.server.stop()
        await self.sources.stop()

    async def die(self) -> None:
        """Nothing is handed over or said."""
        self.sources.topics.hand_over = lambda *_: (_ for _ in ()).throw(RuntimeError("dead"))  # type: ignore[method-assign]
        for outlet in list(self.core.outlets):
            outlet.transport.abort()
        await self.stop()


@asynccontextmanager
async def brokers(*names: str, **settings: str) -> AsyncIterator[list[LocalBroker]]:
    """Brokers that know each other."""
    made = [LocalBroker(name, **settings) for name in names]
    for broker in made:
        await broker.start()
    agree(made)
    try:
        yield made
    finally:
        for broker in made:
            await broker.stop()


def agree(living: Sequence[LocalBroker], heard_by: Sequence[LocalBroker] | None = None) -> None:
    """Tell brokers who lives."""
    for broker in living if heard_by is None else heard_by:
        broker.sources.set_topology([one.info for one in living])


class Subscriber:
    """Follows one target at one broker. Fails where the broker leaves a hole that it did not announce."""

    def __init__(self, url: str, target: str | dict[str, Any], position: str | None = None, token: str = TOKEN) -> None:
        """``target`` is a topic's name, or a target as the protocol writes it."""
        self._target = {"kind": "topic", "name": target} if isinstance(target, str) else target
        self._url, self._token, self.position = url, token, position
        self.stream = ""
        self.answers: list[dict[str, Any]] = []
        self.got: list[Any] = []
        self.gaps: list[tuple[str, int | None]] = []
        self.recovered: bool | None = None
        self._socket: ClientConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Subscriber:
        url = self._url.replace("http", "ws") + "/connect"
        self._socket = await connect(url, subprotocols=[Subprotocol(SUBPROTOCOL)], proxy=None)
        wanted = {"id": "s", "target": self._target, "position": self.position}
        await self._send({"type": "login", "request": 1, "token": self._token, "subscriptions": [wanted]})
        welcome = json.loads(await asyncio.wait_for(self._socket.recv(), WAIT_S))
        assert welcome["type"] == "welcome", welcome
        assert not welcome.get("refused"), welcome
        (standing,) = welcome["subscriptions"]
        self.position, self.recovered = standing["position"], standing.get("recovered", True)
        self.stream = standing["stream"]
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._socket is not None
        assert self._task is not None
        await self._socket.close()
        await self._task

    async def until(self, count: int) -> list[Any]:
        """Wait for so many notifications in all."""
        await asyncio.wait_for(self._until(lambda: len(self.got) >= count), WAIT_S)
        return self.got

    async def until_gaps(self, count: int) -> None:
        await asyncio.wait_for(self._until(lambda: len(self.gaps) >= count), WAIT_S)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._changed.clear()
            await self._changed.wait()

    async def records(self, dataset: str, *records: dict[str, Any]) -> dict[str, Any]:
        """Send records; the broker's answer."""
        await self._send({"type": "records", "request": 7, "dataset": dataset, "records": list(records)})

        async def wait() -> dict[str, Any]:
            while not self.answers:
                self._changed.clear()
                await self._changed.wait()
            return self.answers.pop()

        return await asyncio.wait_for(wait(), WAIT_S)

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(message))

    async def _read(self) -> None:
        assert self._socket is not None
        async for data in self._socket:
            self._take(json.loads(data))
            self._changed.set()

    def _take(self, message: dict[str, Any]) -> None:
        assert self.position is not None
        if message["type"] == "notification":
            assert message["after"] <= self.position < message["through"], (self.position, message)
            self.position = message["through"]
            self.got.append(message["payload"])
        elif message["type"] == "gap":
            for hole in message["holes"]:
                assert hole["after"] <= self.position or message["reason"] == "ahead", (self.position, message)
                self.position = max(self.position, hole["through"])
                self.gaps.append((message["reason"], hole["count"]))
        else:
            self.answers.append(message)
