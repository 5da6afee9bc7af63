"""``tocsin broker``: all parts of a broker put together, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging

import uvloop

from tocsin.broker.app import create_app
from tocsin.broker.core import Core, Keys
from tocsin.broker.residents import LocalResidents
from tocsin.broker.server import BrokerServer, make_hub, tls_context, until_signal
from tocsin.broker.upstream.assembly import Sources
from tocsin.broker.upstream.routes import MESSAGES, peer_routes
from tocsin.config import Broker, Config
from tocsin.jwks import verifier
from tocsin.tokens import ensure_secret
from tocsin.web.connection import ConnectionLimits
from tocsin.web.descriptors import allow_connections

log = logging.getLogger(__name__)


def run(config: Config) -> None:
    """Serve until SIGTERM or SIGINT; returns when everything is stopped."""
    allow_connections(config.broker.max_connections, usual=Broker().max_connections)
    uvloop.run(serve(config))


async def serve(config: Config) -> None:
    secret, hub = ensure_secret(config.secret_path), make_hub(config.broker)
    sources = Sources(config, secret, hub)
    keys = Keys(verifier(config.auth, secret), secret, config.auth.leeway)
    core = Core(config.broker, hub, sources.upstreams, sources.directory, keys)
    residents = LocalResidents(core)
    origins = config.http.allowed_origins.split()
    app = create_app(
        core, sources.notices, [peer_routes(sources.topics)], MESSAGES,
        origins=origins, open_metrics=config.http.open_metrics,
    )  # fmt: skip
    tls = tls_context(config.http.tls_certificate, config.http.tls_key)
    http = config.http
    limits = ConnectionLimits(http.head_timeout, http.body_timeout, http.stall_timeout, http.keep_alive)
    server = BrokerServer(core, app, origins=origins, tls=tls, http_limits=limits, max_http=http.max_connections)
    sources.url = server.url
    await server.start()
    sources.start(residents)
    log.info("serving at %s", server.url)

    async def end(is_hurried: asyncio.Event) -> None:
        log.info("draining")
        sources.topics.leave()
        await server.drain(residents, is_hurried)
        await _handed_over(sources, config.upstream.settle, is_hurried)
        await server.stop()
        await sources.stop(is_hurried)

    await until_signal(end)


async def _handed_over(sources: Sources, within_s: float, is_hurried: asyncio.Event) -> None:
    """Wait for the topics stamped here to be taken by others, if there are others."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while not sources.topics.is_relieved and not is_hurried.is_set() and loop.time() < deadline:
        await asyncio.sleep(0.05)
