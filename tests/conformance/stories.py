"""What a story has to tell with: a client, two brokers and a coordinator, all on real sockets."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.drivers import Driver, NodeDriver, PythonDriver
from support.scripted import Broker, Coordinator, Peer, broker, coordinator

QUICK = {"backoff_min": 5, "backoff_max": 50, "ack_interval": 10}
NEWS = {"kind": "topic", "name": "news"}
S = "topic:news"
STORY_S = 60.0


@dataclass
class World:
    client: Driver
    a: Broker
    b: Broker
    coordinator: Coordinator

    async def connect(self, *stands: dict[str, Any], times_ms: dict[str, float] | None = None, **options: Any) -> Peer:
        """Log in at broker ``a``; the connection as the broker sees it."""
        _, peer = await asyncio.gather(self.begin(times_ms=times_ms, **options), self._admit(*stands))
        return peer

    async def begin(self, times_ms: dict[str, float] | None = None, **options: Any) -> Any:
        """Have the client connect, to broker ``a`` unless told otherwise, and wait until it has."""
        where = {} if "coordinator" in options else {"broker": self.a.url}
        return await self.client.ask(
            "connect", options={**where, "settings_ms": {**QUICK, **(times_ms or {})}, **options}
        )

    async def subscribe(
        self,
        peer: Peer,
        *,
        id: str = "n",
        target: dict[str, Any] | None = None,
        stream: str = S,
        at: str = "0",
        **more: Any,
    ) -> Any:
        asked = self.client.ask("subscribe", id=id, target=target or NEWS, **more)
        return (await asyncio.gather(asked, peer.subscribed(stream, at)))[0]

    async def subscribed(self, **options: Any) -> Peer:
        """Logged in at ``a`` and subscribed to the news, at position 0."""
        peer = await self.connect(**options)
        await self.subscribe(peer)
        return peer

    async def _admit(self, *stands: dict[str, Any]) -> Peer:
        peer = await self.a.peer()
        await peer.welcome(*stands)
        return peer


def story(tell: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is told once with each client."""

    @pytest.mark.parametrize("kind", [PythonDriver, NodeDriver], ids=lambda kind: kind.name)
    @functools.wraps(tell)
    def told(kind: type[Driver], stage: asyncio.Runner, **parameters: Any) -> None:
        stage.run(_tell(kind, tell, parameters))

    others = list(inspect.signature(tell).parameters.values())[1:]
    first = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("kind", "stage")]
    told.__signature__ = inspect.Signature([*first, *others])  # type: ignore[attr-defined]
    return told


async def _tell(kind: Any, tell: Callable[..., Awaitable[None]], parameters: dict[str, Any]) -> None:
    async with asyncio.timeout(STORY_S), AsyncExitStack() as stack:
        driver = kind()
        a, b = await stack.enter_async_context(broker()), await stack.enter_async_context(broker())
        placing = await stack.enter_async_context(coordinator())
        await driver.start()
        stack.push_async_callback(driver.stop)
        stack.push_async_callback(_stop_brokers, a, b)
        await tell(World(driver, a, b, placing), **parameters)


async def _stop_brokers(*brokers: Broker) -> None:
    """First, so that a client which still waits for a goodbye does not have to."""
    for one in brokers:
        await one.stop()
