"""What every connection is at first: a request whose head decides who goes on with it.

``GET /connect`` becomes a WebSocket, ``GET /events`` an event stream, everything else is HTTP's. The bytes that
came are handed on, so nobody notices. Where tokens are off, the two that are not HTTP's are refused to a foreign
``Host`` here, as HTTP refuses it itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from tocsin.broker.connection import Connection
from tocsin.broker.core import Core
from tocsin.broker.handshake import EVENTS, accept, origin_of, read_head, response, route
from tocsin.broker.sse import EventStream
from tocsin.web.loopback import foreign_host


@dataclass(frozen=True, slots=True)
class Front:
    """What all connections share: the core, origins of pages that may connect, and HTTP's protocol."""

    core: Core
    origins: Sequence[str]
    http: Callable[[], asyncio.Protocol]


class Listener(asyncio.Protocol):
    __slots__ = ("_data", "_ends_at", "_front", "_transport", "turn")

    _transport: asyncio.Transport

    def __init__(self, front: Front) -> None:
        self._front = front
        self._data = b""
        self.turn: int | None = None
        self._ends_at = front.core.now() + front.core.settings.login_timeout

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._front.core.wheel.add(self, self._ends_at)

    def due(self, now: float) -> float | None:
        """A connection that has not asked in time is closed."""
        if self._transport.is_closing() or self._transport.get_protocol() is not self:
            return None
        if now < self._ends_at:
            return self._ends_at
        self._transport.abort()
        return None

    def data_received(self, data: bytes) -> None:
        self._data += data
        where = route(self._data)
        if where == "":
            self._hand_over(self._front.http(), self._data)
        elif b"\r\n\r\n" in self._data:
            self._open(where or "", self._data)
        elif len(self._data) > self._front.core.settings.max_head_bytes:
            self._answer(response(431, b"the head of the request is too long\n"))

    def _open(self, where: str, data: bytes) -> None:
        end = data.index(b"\r\n\r\n") + 4
        if self._front.core.is_full:
            self._answer(
                response(503, b"the broker has as many connections as allowed\n", headers={"Retry-After": "5"})
            )
            return
        if self._front.core.settings.insecure and (problem := _foreign_host(data[:end])):
            self._answer(response(403, f"{problem}\n".encode()))
            return
        if where == EVENTS:
            self._open_events(data[:end])
            return
        answer, stands = accept(data[:end], self._front.origins)
        if not stands:
            self._answer(answer)
            return
        self._transport.write(answer)
        self._hand_over(Connection(self._front.core), data[end:])

    def _open_events(self, request: bytes) -> None:
        try:
            head = read_head(request)
        except ValueError as problem:
            self._answer(response(400, f"{problem}\n".encode()))
            return
        origin = origin_of(head.headers)
        visitor = self._front.core.referrals.visitor(origin, head.query) if origin is not None else None
        if visitor is not None and not {visitor.origin, visitor.shown} & set(self._front.origins):
            self._answer(response(403, b"pages of this origin may not connect\n"))
            return
        self._hand_over(EventStream(self._front.core, head, visitor), b"")

    def _hand_over(self, protocol: asyncio.Protocol, data: bytes) -> None:
        self._data = b""
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if data:
            protocol.data_received(data)

    def _answer(self, answer: bytes) -> None:
        self._transport.write(answer)
        self._transport.close()


def _foreign_host(request: bytes) -> str | None:
    """What is wrong with the ``Host``; None where it is a loopback name, or there is no head to read it from."""
    try:
        return foreign_host(read_head(request).headers.get_all("host"))
    except ValueError:
        return None  # refused by whoever reads it next
