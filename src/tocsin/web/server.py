"""Serving the application with uvicorn: in front, until a signal comes, or behind, in a thread.

The first SIGTERM or SIGINT starts a drain: readiness fails, waiting pulls answer, requests under way are
finished, then ``run`` returns, so that the caller can close what stands behind the application. A second
SIGINT stops waiting for them. Only the command line configures log handlers, so uvicorn is told not to.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import uvicorn
from fastapi import FastAPI

from tocsin.config import Config, url_of
from tocsin.errors import Unavailable
from tocsin.web.connection import ConnectionLimits, bounded
from tocsin.web.descriptors import allow_connections
from tocsin.web.listening import listening

Beside = Callable[[], Coroutine[Any, Any, None]]

log = logging.getLogger(__name__)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
START_TIMEOUT_S = 30.0
_AFTER_408_S = 5.0  # for the sender of a slow body to read that it is too slow


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM form."""

    certificate: Path
    key: Path

    def __str__(self) -> str:
        return f"the certificate {self.certificate} and the key {self.key}"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    host: str = "127.0.0.1"
    port: int = 8420  # 0 takes any that is free
    tls: Tls | None = None
    max_connections: int = 2048  # beyond it a request is answered 503 by the server itself
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    drain_timeout_s: float = 10.0  # for requests under way at the end

    @staticmethod
    def of(host: str, port: int, config: Config) -> ServerOptions:
        """As the settings have them that hold for every server."""
        http = config.http
        return ServerOptions(
            host,
            port,
            Tls(Path(http.tls_certificate), Path(http.tls_key)) if http.tls_certificate else None,
            http.max_connections,
            ConnectionLimits(http.head_timeout, http.body_timeout + _AFTER_408_S, http.stall_timeout, http.keep_alive),
            http.drain_timeout,
        )


class Drains(Protocol):
    """What an application has at ``app.state.api``."""

    def drain(self) -> None:
        """From here on not ready, and requests that wait are answered."""
        ...


class ApiServer:
    """One listening socket and the loop behind it; ``url`` is known from the start.

    ``on_drain`` may run in a signal handler: it should say that it is time to stop, not do the stopping.
    ``beside`` runs in the same loop from before the first request to after the last, when it is cancelled; if it
    ends by itself, with an error or without, the server drains.
    """

    def __init__(
        self,
        app: FastAPI,
        options: ServerOptions,
        on_drain: Callable[[], None] | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._options = options
        config = _config(app, options)
        self._socket = listening(options.host, options.port)
        self.port = int(self._socket.getsockname()[1])
        self._server = _Server(config, _drain(app, on_drain), beside)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return url_of("https" if self._options.tls else "http", self._options.host, self.port)

    @property
    def is_stopping(self) -> bool:
        return self._server.should_exit

    def run(self) -> None:
        """Serve in this thread, which must be the main one for signals to count."""
        allow_connections(self._options.max_connections)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def start(self) -> None:
        """Serve in a thread; returns when requests are answered."""
        self._thread = threading.Thread(target=self.run, name="tocsin-api", daemon=True)
        self._thread.start()
        if not self._server.is_started.wait(START_TIMEOUT_S):
            raise Unavailable(f"the API did not start at {self.url} within {START_TIMEOUT_S:g} s")

    def stop(self) -> None:
        """Drain, wait for the end if ``start`` was used, and let go of the port."""
        self._server.stop()
        if self._thread is not None:
            self._thread.join()
        elif not self._server.started:
            self._socket.close()


class _Server(uvicorn.Server):
    """uvicorn's, save that signals drain and do not come again after the end."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], None], beside: Beside | None) -> None:
        super().__init__(config)
        self._drain, self._beside = drain, beside
        self._task: asyncio.Task[None] | None = None
        self.is_started = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._beside is not None:
            self._task = asyncio.create_task(self._beside())
            self._task.add_done_callback(self._ended)
        await super().startup(sockets)
        self.is_started.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("the server stops: %s", task.exception())
        self.stop()

    def stop(self) -> None:
        if not self.should_exit:
            self._drain()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _config(app: FastAPI, options: ServerOptions) -> uvicorn.Config:
    tls = options.tls
    config = uvicorn.Config(
        app,
        http=bounded(options.limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=options.max_connections,
        timeout_graceful_shutdown=max(1, round(options.drain_timeout_s)),
        ssl_certfile=str(tls.certificate) if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
    )
    try:
        config.load()
    except OSError as error:  # of the certificate, told before anything starts
        raise Unavailable(f"TLS cannot be used with {tls}: {error}") from None
    return config


def _drain(app: FastAPI, then: Callable[[], None] | None) -> Callable[[], None]:
    api: Drains = app.state.api

    def drain() -> None:
        api.drain()
        if then is not None:
            then()

    return drain
