"""Around every request: how long it took, and a decent answer to what nobody foresaw, or to a stop of the server.

Counted by the route's template, never by the path, so that labels stay few. Of a request nothing else is
kept: neither its headers nor its body reach the log.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.errors import Unavailable
from tocsin.web.problems import problem_of, unexpected

UNMATCHED = "(unmatched)"
CLIENT_GONE = 499  # as others count requests whose sender left before the answer


class HttpMetrics(Protocol):
    def http(self, route: str, method: str, status: int, seconds: float) -> None: ...


class Observe:
    def __init__(self, app: ASGIApp, metrics: HttpMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, answered = time.perf_counter(), _Answered(send)
        try:
            await self._guarded(scope, receive, answered)
        finally:
            route = getattr(scope.get("route"), "path", UNMATCHED)
            self._metrics.http(route, scope["method"], answered.status, time.perf_counter() - started)

    async def _guarded(self, scope: Scope, receive: Receive, answered: _Answered) -> None:
        try:
            await self._app(scope, receive, answered)
            return
        except ClientDisconnect:
            return
        except asyncio.CancelledError:  # a drain waits no longer; this is the end of the task, so nobody misses it
            response = problem_of(Unavailable("the server stops, and the request was not finished"))
        except Exception as error:
            response = unexpected(error)
        if answered.status == CLIENT_GONE:
            await response(scope, receive, answered)


class _Answered:
    """Remembers the status that was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = CLIENT_GONE

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
