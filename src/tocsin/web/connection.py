"""What uvicorn leaves to a proxy in front: time limits of a connection, and an answer to what is not HTTP.

A connection is closed without an answer when

* the head of a request is not complete ``head_s`` after the connection was made or the request before it ended,
* its body is not complete ``body_s`` later (the application has answered 408 before that), or
* nothing of an answer that waits to be sent was taken for ``stall_s``.

While an answer is being made there is no limit: a pull may wait.

Silent connections, on which no whole head of a request has come since they were made or last answered, give way: when
there are as many connections as the server may have, the one that was silent for longest is closed for the next that
comes. So those who connect and say nothing, or dribble a head, keep nobody out who asks at once.

A request that tells the length of its body in two ways (Content-Length and Transfer-Encoding) is refused: a proxy
that believes the other one would take a part of its body for another request.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from tocsin.web.problems import problem

LOOK_S = 1.0  # the longest time between two looks at a connection
_EXPECTED = "expected HTTP/1.1, in its head and in the chunks of its body, with one way of telling the body's length"
_LENGTHS = {b"content-length", b"transfer-encoding"}


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    head_s: float = 10.0
    body_s: float = 35.0
    stall_s: float = 30.0
    keep_alive_s: float = 20.0


def bounded(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol of a server whose connections keep to ``limits``."""
    return type("BoundedHttp", (_BoundedHttp,), {"limits": limits, "silent": {}})


class _OneLength(h11.Connection):
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request) and {name for name, _ in event.headers} >= _LENGTHS:
            raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding")
        return event


class _BoundedHttp(H11Protocol):
    """``silent`` are the server's silent connections, that of the longest silence first."""

    limits = ConnectionLimits()
    silent: ClassVar[dict[_BoundedHttp, None]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.conn = _OneLength(h11.SERVER)
        limits = self.limits
        self.timeout_keep_alive = limits.keep_alive_s  # type: ignore[assignment]  # uvicorn gives it to the loop
        self._pause_s = min(LOOK_S, min(limits.head_s, limits.body_s, limits.stall_s) / 4)
        self._known, self._since = self._progress(), self.loop.time()
        self._timer = self.loop.call_later(self._pause_s, self._look)
        self.silent[self] = None
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self.silent.pop(self, None)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.their_state is h11.IDLE:
            self.silent.setdefault(self)  # where it was: a part of a head breaks no silence
        else:
            self.silent.pop(self, None)

    def _make_room(self) -> None:
        others = (one for one in self.silent if one is not self)
        if len(self.connections) >= (self.limit_concurrency or math.inf) and (longest := next(others, None)):
            del self.silent[longest]
            self.connections.discard(longest)  # now: its loss is told later
            longest.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """What comes is not HTTP: say so, unless the request was answered already; its application hears no more."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._say(problem("malformed-body", _EXPECTED))
        self.transport.close()

    def _say(self, answer: Response) -> None:
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=answer.status_code, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event))

    def _look(self) -> None:
        known, now = self._progress(), self.loop.time()
        if known != self._known:
            self._known, self._since = known, now
        limit_s = self._limit_s()
        if limit_s is not None and now - self._since > limit_s:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(self._pause_s, self._look)

    def _progress(self) -> tuple[Any, ...]:
        """What stays the same while nothing moves: the request, how far it is read, and what waits to be sent."""
        return self.cycle, self.conn.their_state, self.transport.get_write_buffer_size(), self._is_between()

    def _is_between(self) -> bool:
        """Whether a request was answered and nothing of another has come: uvicorn closes it after ``keep_alive_s``."""
        return self.cycle is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def _limit_s(self) -> float | None:
        state = self.conn.their_state
        if state is h11.IDLE and not self._is_between():
            return self.limits.head_s
        if state is h11.SEND_BODY:
            return self.limits.body_s
        return self.limits.stall_s if self.transport.get_write_buffer_size() else None
