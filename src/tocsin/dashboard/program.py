"""``tocsin dashboard``: a broker of its own topics alone, with pages beside it, and what feeds them.

One port serves everything: the broker's listener gives ``/connect`` to its WebSocket and the rest to HTTP. Samples go
out on the topic ``system``, the city on ``city``, to whoever may follow these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import uvloop

from tocsin.broker.app import create_app
from tocsin.broker.core import Core, Keys
from tocsin.broker.ports import Publisher
from tocsin.broker.residents import LocalResidents
from tocsin.broker.server import BrokerServer, make_hub, tls_context, until_signal
from tocsin.broker.upstream.assembly import Sources
from tocsin.broker.users import User
from tocsin.config import Config, page_origins, url_of
from tocsin.dashboard import api, city, pages
from tocsin.dashboard.api import Addresses, Limits
from tocsin.dashboard.api import Dashboard as Shared
from tocsin.dashboard.asking import AsOneself
from tocsin.dashboard.entering import Door, entrance
from tocsin.dashboard.feeding import Live, Playing
from tocsin.dashboard.lab import Lab
from tocsin.dashboard.replay import Replay
from tocsin.dashboard.sampling import Sampler
from tocsin.dashboard.stage import Stage
from tocsin.dashboard.telling import Speaker
from tocsin.errors import Refused
from tocsin.jwks import verifier
from tocsin.protocol.targets import topic_stream
from tocsin.tls import trusting
from tocsin.tokens import Principal, ensure_secret
from tocsin.web.connection import ConnectionLimits

log = logging.getLogger(__name__)
NAME = "dashboard"
CONNECTIONS = 32  # to those who are asked how they are


def run(config: Config, replay: Replay | None = None, on_ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve until SIGTERM or SIGINT; ``on_ready`` hears the address that lets its first visitor in."""
    uvloop.run(serve(config, replay, on_ready))


async def serve(config: Config, replay: Replay | None, on_ready: Callable[[str], None]) -> None:
    secret = ensure_secret(config.secret_path)
    broker = LoneBroker(config, secret)
    speaker, stage = broker.speaker, Stage()
    async with _asker(config, secret) as client:
        if replay is not None:
            feed: Live | Playing = Playing(replay, config.dashboard, stage, speaker)
        else:
            sampler = Sampler(client, *addresses(config), config.dashboard, speaker.sample)
            feed = Live(sampler, stage, speaker, broker.is_map_watched, config.dashboard.assignments_every)
        broker.app.state.dashboard = Shared(
            source=feed,
            stage=stage,
            door=Door(secret, config.auth.token_ttl),
            lab=Lab(config.dashboard),
            addresses=Addresses(*addresses(config), config.dashboard.insecure, replay is not None),
            speaker=speaker,
            limits=Limits(config.dashboard.max_body_bytes, config.http.body_timeout),
        )
        await broker.start()
        on_ready(entrance(broker.server.url, secret, config.dashboard.enter_ttl))
        await _until_told(feed.run)
    await broker.stop()


class OwnTopics:
    """Visitors publish on the city alone, and who may; samples are the dashboard's own word."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def publish(self, topic: str, payload: bytes, principal: Principal) -> str:
        if topic != city.TOPIC:
            raise Refused(f"the dashboard takes publications under {city.TOPIC!r} alone, got {topic!r}")
        return await self._publisher.publish(topic, payload, principal)


class LoneBroker:
    """A broker at the dashboard's address, of its own topics, with the pages beside it."""

    def __init__(self, config: Config, secret: bytes) -> None:
        alone, http = lone(config), config.http
        self._hub = make_hub(alone.broker)
        self.sources = Sources(alone, secret, self._hub)
        keys = Keys(verifier(config.auth, secret), secret, config.auth.leeway)
        self.speaker = Speaker(self.sources.topics)
        upstreams = replace(self.sources.upstreams, publisher=OwnTopics(self.speaker))
        self._core = Core(alone.broker, self._hub, upstreams, self.sources.directory, keys)
        origins = http.allowed_origins.split()
        self.app = create_app(
            self._core,
            self.sources.notices,
            [api.guarded],
            api.MESSAGES,
            origins=origins,
            open_metrics=http.open_metrics,
        )
        for router in (api.opened, pages.router):
            self.app.include_router(router)
        limits = ConnectionLimits(http.head_timeout, http.body_timeout, http.stall_timeout, http.keep_alive)
        tls = tls_context(http.tls_certificate, http.tls_key)
        self.server = BrokerServer(
            self._core, self.app, origins=origins, tls=tls, http_limits=limits, max_http=http.max_connections
        )
        self.sources.url = self.server.url
        origins += page_origins(self.server.url)  # which is known only now, and of which the server is told so

    def is_map_watched(self) -> bool:
        return topic_stream(city.TOPIC) in self._hub.streams()

    async def start(self) -> None:
        await self.server.start()
        self.sources.start(LocalResidents(self._core))
        self._core.on_left = self._left
        log.info("serving at %s", self.server.url)

    def _left(self, user: User) -> None:
        self._core.tasks.spawn(self._forget(user))

    async def _forget(self, user: User) -> None:
        """Pages bring what they follow with them: what nobody looks at is not kept, and not told to other pages."""
        if not user.sessions:
            await self._core.subscribing.let_go_all(user)
        if not user.sessions and not user.subscriptions:
            self._core.users.remove(user)

    async def stop(self) -> None:
        await self.server.stop()
        await self.sources.stop()


def lone(config: Config) -> Config:
    """The configuration of a broker that has neither cluster nor coordinator, at the dashboard's address."""
    board = config.dashboard
    broker = replace(
        config.broker, name=NAME, host=board.host, port=board.port, url=board.url, insecure=board.insecure,
        cluster="", coordinator="", location="", capacity="",
    )  # fmt: skip
    return replace(config, broker=broker, upstream=replace(config.upstream, topic_bytes=board.topic_bytes))


def addresses(config: Config) -> tuple[str, str]:
    """Of coordinator and cluster."""
    board, scheme = config.dashboard, config.http.scheme
    own = url_of(scheme, config.coordinator.host, config.coordinator.port)
    return (
        board.coordinator or config.client.coordinator or own,
        board.cluster or url_of(scheme, config.cluster.host, config.cluster.port),
    )


def _asker(config: Config, secret: bytes) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=config.dashboard.timeout,
        auth=AsOneself(secret, NAME, ["read"]),
        verify=trusting("http.ca_file", config.http.ca_file) or True,
        limits=httpx.Limits(max_connections=CONNECTIONS),
    )


async def _until_told(feed: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Feed until a signal comes; an error of the feed ends it, too."""

    async def end(_: asyncio.Event) -> None:
        return

    feeding, waiting = asyncio.create_task(feed()), asyncio.create_task(until_signal(end))
    await asyncio.wait({feeding, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not feeding.done():
        feeding.cancel()
    with suppress(asyncio.CancelledError):
        await feeding
