"""The broker's one port: uvloop, the listener, uvicorn's HTTP behind it, and the end.

SIGTERM or SIGINT drains: from then on the broker is not ready, the coordinator is told and places the users
elsewhere at its rate; when nobody is left, or ``drain_timeout`` has passed, connections are closed with 4000.
A second signal does not wait.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from fastapi import FastAPI

from tocsin.broker.core import Core
from tocsin.broker.http import http_protocol
from tocsin.broker.hub import Hub
from tocsin.broker.listener import Front, Listener
from tocsin.broker.metering import Meters
from tocsin.broker.residents import LocalResidents
from tocsin.clock import Clock, SystemClock
from tocsin.config import Broker, url_of
from tocsin.errors import Unavailable
from tocsin.web.connection import ConnectionLimits
from tocsin.web.listening import listening

STEP_S = 1.0  # of the wheel
BACKLOG = 4096
CLOSE_S = 2.0  # for closing handshakes at the end


def make_hub(settings: Broker, clock: Clock | None = None) -> Hub:
    """The hub of a broker whose event loop runs."""
    loop, now = asyncio.get_running_loop(), (clock or SystemClock()).monotonic
    meters = Meters(settings.rate_window, now())
    return Hub(settings.cache_bytes, settings.tick, meters, now, loop.call_later, settings.write_buffer)


def tls_context(certificate: str, key: str) -> ssl.SSLContext | None:
    if not certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(Path(certificate), Path(key))
    except OSError as error:
        raise Unavailable(f"TLS cannot be used with the certificate {certificate} and the key {key}: {error}") from None
    return context


class BrokerServer:
    """Serves from ``start`` to ``stop``; ``port`` and ``url`` are known from the making on."""

    def __init__(
        self,
        core: Core,
        app: FastAPI,
        *,
        origins: Sequence[str] = (),
        tls: ssl.SSLContext | None = None,
        http_limits: ConnectionLimits | None = None,
        max_http: int = 2048,
    ) -> None:
        self._core, self._tls = core, tls
        self._socket = listening(core.settings.host, core.settings.port)
        self.port = int(self._socket.getsockname()[1])
        http, self._http_state = http_protocol(
            app, http_limits or ConnectionLimits(), max_http, lambda: Listener(self._front)
        )
        self._front = Front(core, origins, http)
        self._server: asyncio.Server | None = None
        self._wheel: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        settings = self._core.settings
        return settings.url or url_of("https" if self._tls else "http", settings.host, self.port)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Listener(self._front), sock=self._socket, ssl=self._tls, backlog=BACKLOG
        )
        self._wheel = loop.create_task(self._turn())

    async def drain(self, residents: LocalResidents, is_hurried: asyncio.Event) -> None:
        """Not ready; then wait for users to be placed elsewhere."""
        self._core.is_draining = True
        wait_s = self._core.settings.drain_timeout if self._core.directory.drained() else 0.0
        deadline = self._core.now() + wait_s
        while self._is_awaited(residents) and self._core.now() < deadline and not is_hurried.is_set():
            await asyncio.sleep(min(0.1, wait_s))

    def _is_awaited(self, residents: LocalResidents) -> bool:
        """Whether somebody has yet to go, or to get a last answer."""
        return residents.sessions() > 0 or any(o.session.is_released and not o.is_over for o in self._core.outlets)

    async def stop(self) -> None:
        """Close the port, then every connection."""
        if self._server is not None:
            self._server.close()
        self._core.hub.flush()
        self._core.end_all()
        for connection in list(self._http_state.connections):
            connection.shutdown()
        deadline = self._core.now() + CLOSE_S
        while self._core.outlets and self._core.now() < deadline:
            await asyncio.sleep(0.02)
        for outlet in list(self._core.outlets):
            outlet.transport.abort()
        if self._wheel is not None:
            self._wheel.cancel()

    async def _turn(self) -> None:
        """Turn the wheel, and see how late that is."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + STEP_S
            await asyncio.sleep(STEP_S)
            self._core.meters.lagged(loop.time() - due)
            self._core.wheel.advance(self._core.now())


async def until_signal(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Wait for SIGTERM or SIGINT, then run ``serve``, whose event a second signal sets."""
    loop = asyncio.get_running_loop()
    first, second = asyncio.Event(), asyncio.Event()

    def signalled() -> None:
        (second if first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled)
    await first.wait()
    await serve(second)
