"""``tocsin dashboard``: a broker of its own topics alone, with pages beside it, and what feeds them.

One port serves everything: the broker's listener gives ``/connect`` to its WebSocket and the rest to HTTP. Samples go
out on the topic ``system``, the city on ``city``, to whoever may follow these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import uvloop

from tocsin.broker.app import create_app
from tocsin.broker.core import Core, Keys
from tocsin.broker.residents import LocalResidents
from tocsin.broker.server import BrokerServer, make_hub, tls_context, until_signal
from tocsin.broker.upstream.assembly import Sources
from tocsin.config import Config, page_origins
from tocsin.dashboard import api, city, pages
from tocsin.dashboard.api import Addresses
from tocsin.dashboard.api import Dashboard as Shared
from tocsin.dashboard.asking import AsReader
from tocsin.dashboard.entering import Door, entrance
from tocsin.dashboard.feeding import Live, Playing
from tocsin.dashboard.lab import Lab
from tocsin.dashboard.replay import Replay
from tocsin.dashboard.samples import Sample
from tocsin.dashboard.sampling import Sampler
from tocsin.dashboard.stage import Stage
from tocsin.jwks import verifier
from tocsin.protocol.targets import topic_stream
from tocsin.tls import trusting
from tocsin.tokens import Principal, ensure_secret
from tocsin.web.connection import ConnectionLimits

log = logging.getLogger(__name__)
SYSTEM = "system"
NAME = "dashboard"
CONNECTIONS = 32  # to those who are asked how they are
_OURSELVES = Principal(NAME, ("publish:*",))
_ENCODER = msgspec.json.Encoder()


def run(config: Config, replay: Replay | None = None, on_ready: Callable[[str], None] = lambda url: None) -> None:
    """Serve until SIGTERM or SIGINT; ``on_ready`` hears the address that lets its first visitor in."""
    uvloop.run(serve(config, replay, on_ready))


async def serve(config: Config, replay: Replay | None, on_ready: Callable[[str], None]) -> None:
    secret, alone = ensure_secret(config.secret_path), lone(config)
    hub = make_hub(alone.broker)
    sources = Sources(alone, secret, hub)
    keys = Keys(verifier(config.auth, secret), secret, config.auth.leeway)
    core = Core(alone.broker, hub, sources.upstreams, sources.directory, keys)
    origins = config.http.allowed_origins.split()
    app = create_app(
        core, sources.notices, [api.guarded], api.MESSAGES, origins=origins, open_metrics=config.http.open_metrics
    )  # fmt: skip
    for router in (api.opened, pages.router):
        app.include_router(router)
    http = config.http
    limits = ConnectionLimits(http.head_timeout, http.body_timeout, http.stall_timeout)
    tls = tls_context(http.tls_certificate, http.tls_key)
    server = BrokerServer(core, app, origins=origins, tls=tls, http_limits=limits, max_http=http.max_connections)
    sources.url = server.url
    origins += page_origins(server.url)

    positions: dict[str, str] = {}

    async def tell(topic: str, message: Any) -> None:
        positions[topic] = await sources.topics.publish(topic, _ENCODER.encode(message), _OURSELVES)

    async def tell_city(message: dict[str, Any]) -> None:
        await tell(city.TOPIC, message)

    async def tell_sample(sample: Sample) -> None:
        await tell(SYSTEM, sample)

    stage = Stage()
    async with httpx.AsyncClient(
        timeout=config.dashboard.timeout,
        auth=AsReader(secret),
        verify=trusting("http.ca_file", http.ca_file) or True,
        limits=httpx.Limits(max_connections=CONNECTIONS),
    ) as client:
        feed = _feed(config, replay, client, stage, tell_sample, tell_city, hub.streams)
        app.state.dashboard = Shared(
            source=feed,
            stage=stage,
            door=Door(secret, config.auth.token_ttl),
            lab=Lab(config.dashboard),
            addresses=Addresses(*addresses(config), config.dashboard.insecure, replay is not None),
            tell=tell_city,
            positions=positions,
        )
        await server.start()
        sources.start(LocalResidents(core))
        log.info("serving at %s", server.url)
        on_ready(entrance(server.url, secret, config.dashboard.enter_ttl))
        await _until_told(feed.run)
    await server.stop()
    await sources.stop()


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
    own = _url(scheme, config.coordinator.host, config.coordinator.port)
    return (
        board.coordinator or config.client.coordinator or own,
        board.cluster or _url(scheme, config.cluster.host, config.cluster.port),
    )


def _feed(
    config: Config,
    replay: Replay | None,
    client: httpx.AsyncClient,
    stage: Stage,
    tell_sample: Callable[[Sample], Awaitable[None]],
    tell_city: Callable[[dict[str, Any]], Awaitable[None]],
    streams: Callable[[], Any],
) -> Live | Playing:
    if replay is not None:
        return Playing(replay, config.dashboard, stage, tell_sample, tell_city)
    sampler = Sampler(client, *addresses(config), config.dashboard, tell_sample)

    def is_watched() -> bool:
        return topic_stream(city.TOPIC) in streams()

    return Live(sampler, stage, tell_city, is_watched, config.dashboard.assignments_every)


async def _until_told(feed: Callable[[], Awaitable[None]]) -> None:
    """Feed until a signal comes; an error of the feed ends it, too."""

    async def work() -> None:
        await feed()

    async def end(_: asyncio.Event) -> None:
        return

    feeding, waiting = asyncio.create_task(work()), asyncio.create_task(until_signal(end))
    await asyncio.wait({feeding, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not feeding.done():
        feeding.cancel()
    with suppress(asyncio.CancelledError):
        await feeding


def _url(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
