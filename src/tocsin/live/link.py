"""A WebSocket as light as it can be: hundreds of them, with thousands of notifications a second, in one process.

It speaks RFC 6455 as far as our brokers do: whole text frames from the broker, masked ones to it (with a mask of
zeros, which changes nothing), pings answered.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import cast

from tocsin.errors import Unavailable
from tocsin.protocol.messages import SUBPROTOCOL

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_MASK = bytes(4)
_OPENING = (
    "GET /connect HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dG9jc2luIGxpdmUgbGFiIQ==\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
)


class Link(asyncio.Protocol):
    """``heard`` gets the body of every text frame; ``lost`` is called once, unless we closed it."""

    def __init__(self, host: str, heard: Callable[[Link, bytes], None], lost: Callable[[Link], None]) -> None:
        self._host, self._heard, self._lost = host, heard, lost
        self._rest = b""
        self._is_open = self._is_closed = False
        self._transport: asyncio.Transport | None = None
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.handshake_bytes = 0

    @classmethod
    async def open(cls, url: str, heard: Callable[[Link, bytes], None], lost: Callable[[Link], None]) -> Link:
        """Unavailable where the broker does not take it."""
        address = url.removeprefix("http://")
        host, _, port = address.rpartition(":")
        try:
            loop = asyncio.get_running_loop()
            _, link = await loop.create_connection(lambda: cls(address, heard, lost), host, int(port))
            await link.opened
        except OSError as problem:
            raise Unavailable(f"{url}: {problem}") from None
        return link

    def send(self, body: bytes) -> int:
        """As a text frame; its length."""
        return self._send(_TEXT, body)

    def close(self) -> None:
        self._is_closed = True
        if self._transport is not None:
            self._send(_CLOSE, struct.pack("!H", 1000))
            self._transport.close()

    # --- as asyncio calls it ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, request = cast(asyncio.Transport, transport), _OPENING.format(host=self._host).encode()
        self.handshake_bytes += len(request)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        self._rest = data
        if not self._is_open and not self._is_answered():
            return
        data, at = self._rest, 0
        while (frame := frame_at(data, at)) is not None:
            begin, end = frame
            self._frame(data[at] & 15, data[begin:end])
            at = end
        self._rest = data[at:]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(Unavailable(f"{self._host} closed the connection before it was open"))
        elif not self._is_closed:
            self._is_closed = True
            self._lost(self)

    def _is_answered(self) -> bool:
        """Whether the broker's answer to the opening is here and good; what follows it stays."""
        head, separator, rest = self._rest.partition(b"\r\n\r\n")
        if not separator or self.opened.done():
            return False
        self.handshake_bytes += len(head) + len(separator)
        if not head.startswith(b"HTTP/1.1 101"):
            self.opened.set_exception(Unavailable(f"{self._host}: {head[:60]!r}"))
            return False
        self._is_open, self._rest = True, rest
        self.opened.set_result(None)
        return True

    def _frame(self, kind: int, body: bytes) -> None:
        if kind == _TEXT and not self._is_closed:
            self._heard(self, body)
        elif kind == _PING:
            self._send(_PONG, body)

    def _send(self, kind: int, body: bytes) -> int:
        size, first = len(body), 0x80 | kind
        if size < 126:
            head = struct.pack("!BB", first, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", first, 0xFE, size)
        else:
            head = struct.pack("!BBQ", first, 0xFF, size)
        frame = head + _MASK + body
        if self._transport is not None:
            self._transport.write(frame)
        return len(frame)


def frame_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Where the body of an unmasked frame begins and ends; None where it is not whole yet."""
    have = len(data) - at
    if have < 2:
        return None
    size, head = data[at + 1] & 127, 2
    if size == 126:
        head = 4
    elif size == 127:
        head = 10
    if have < head:
        return None
    if head > 2:
        size = int.from_bytes(data[at + 2 : at + head], "big")
    return (at + head, at + head + size) if have >= head + size else None
