"""The first request of a connection: read its head, and answer the opening of a WebSocket.

The head is parsed by ``websockets``; the opening handshake is its ServerProtocol's, with our subprotocol
required, origins checked, and no extension (compression costs more than it saves here).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote, unquote_plus

from websockets.datastructures import Headers
from websockets.exceptions import NegotiationError, WebSocketException
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.streams import StreamReader
from websockets.typing import Origin, Subprotocol

from tocsin.protocol.messages import SUBPROTOCOL

WEB_SOCKET = "/connect"
EVENTS = "/events"
wire_log = logging.getLogger("tocsin.broker.wire")
wire_log.setLevel(logging.WARNING)  # the library would tell of every connection that opens and closes


class Head:
    """A parsed request."""

    __slots__ = ("headers", "path", "query")

    def __init__(self, request: Request) -> None:
        self.path, _, self.query = request.path.partition("?")
        self.headers = request.headers

    def get(self, name: str) -> str | None:
        values = self.headers.get_all(name)
        return values[-1] if values else None


def route(data: bytes) -> str | None:
    """Where a request beginning with ``data`` goes: ``/connect``, ``/events``, or '' for HTTP; None when too short."""
    line, separator, _ = data.partition(b"\r\n")
    for path in (WEB_SOCKET, EVENTS):
        start = f"GET {path}".encode()
        if line.startswith(start) and len(line) > len(start):
            return path if line[len(start) :][:1] in b"? " else ""
        if start.startswith(line) and not separator:
            return None
    return ""


def read_head(data: bytes) -> Head:
    """The request whose head ``data`` holds whole; ValueError where it is not one."""
    reader = StreamReader()
    reader.feed_data(data)
    parsing = Request.parse(reader.read_line)
    try:
        next(parsing)
    except StopIteration as done:
        return Head(done.value)
    except (EOFError, WebSocketException, UnicodeError) as problem:
        raise ValueError(str(problem)) from None
    raise ValueError("the head is not complete")


def accept(data: bytes, origins: Sequence[str]) -> tuple[bytes, bool]:
    """The answer to a WebSocket's opening request, and whether it stands."""
    allowed: list[Origin | None] = [None, *map(Origin, origins)]
    protocol = ServerProtocol(
        origins=allowed, subprotocols=[Subprotocol(SUBPROTOCOL)], select_subprotocol=_ours, logger=wire_log
    )
    protocol.receive_data(data)
    for event in protocol.events_received():
        if isinstance(event, Request):
            answer = protocol.accept(event)
            protocol.send_response(answer)
            return b"".join(protocol.data_to_send()), answer.status_code == HTTPStatus.SWITCHING_PROTOCOLS
    return response(400, b"the request is not a WebSocket's opening\n"), False


def response(
    status: int, body: bytes, media_type: str = "text/plain", headers: Mapping[str, str] | None = None
) -> bytes:
    """A whole answer, after which the connection is closed."""
    fields = {"Content-Type": media_type, "Content-Length": str(len(body)), "Connection": "close", **(headers or {})}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{k}: {v}" for k, v in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def without(query: str, name: str) -> str:
    """``query`` without what it has under ``name``, the rest as it is written."""
    return "&".join([part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != name])


def extended(query: str, name: str, value: str) -> str:
    return "&".join(filter(None, [query, f"{name}={quote(value)}"]))


def origin_of(headers: Headers) -> str | None:
    values = headers.get_all("origin")
    return values[0] if values else None


def _ours(_: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol:
    if SUBPROTOCOL in offered:
        return Subprotocol(SUBPROTOCOL)
    raise NegotiationError(f"the subprotocol {SUBPROTOCOL} is needed")
