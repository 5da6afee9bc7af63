"""One WebSocket to a broker: what was asked to be sent leaves in order, what comes is handed on."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from tocsin.protocol.codes import TOO_BIG
from tocsin.protocol.messages import SUBPROTOCOL

ABNORMAL = 1006
_CLOSE_S = 2.0


class Listener(Protocol):
    async def opened(self, link: int) -> None: ...
    def received(self, link: int, data: bytes) -> None: ...
    def closed(self, link: int, code: int, reason: str) -> None: ...


class Wire:
    """Connects at once. ``listener`` hears of everything, until ``close`` was called."""

    def __init__(
        self, link: int, url: str, listener: Listener, max_message_bytes: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._link, self._url, self._listener, self._max_bytes = link, url, listener, max_message_bytes
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._socket: ClientConnection | None = None
        self._is_closed = False
        self._is_opening = True  # while the listener thinks of what to say first, which may be for ever
        self.task = asyncio.create_task(self._run(), name=f"tocsin-link-{link}")

    def send(self, data: bytes) -> None:
        self._outgoing.put_nowait(data)

    def close(self, code: int, spawn: Callable[[asyncio.Task[None]], None]) -> None:
        """Send what waits, then close; nothing more is told."""
        self._is_closed = True
        if self._socket is None or self._is_opening:
            self.task.cancel()
        else:
            spawn(asyncio.create_task(self._close(self._socket, code)))

    async def _close(self, socket: ClientConnection, code: int) -> None:
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                while not self._outgoing.empty():
                    await socket.send(self._outgoing.get_nowait(), text=True)
        await socket.close(code)

    async def _run(self) -> None:
        code, reason = ABNORMAL, ""
        try:
            code, reason = await self._talk()
        except Exception as problem:  # a token's function is the application's: it may raise anything
            reason = f"{self._url}: {str(problem) or type(problem).__name__}"
        finally:
            if not self._is_closed:
                self._listener.closed(self._link, code, reason)

    async def _talk(self) -> tuple[int, str]:
        url = socket_url(self._url)
        async with connect(
            url,
            ssl=(self._tls or True) if url.startswith("wss:") else None,
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            compression=None,
            ping_interval=None,
            open_timeout=None,
            close_timeout=_CLOSE_S,
            max_size=self._max_bytes,
            proxy=None,
        ) as socket:
            self._socket = socket
            writer = asyncio.create_task(self._write(socket))
            try:
                await self._listener.opened(self._link)
                self._is_opening = False
                if not await self._read(socket):
                    return TOO_BIG.number, f"{self._url}: a message of more than {self._max_bytes:,} bytes"
                if self._is_closed:
                    await socket.wait_closed()
            finally:
                writer.cancel()
        return socket.close_code or ABNORMAL, socket.close_reason or ""

    async def _read(self, socket: ClientConnection) -> bool:
        """Until the connection is closed; false where we did it, for a message that is too long."""
        try:
            while not self._is_closed:
                data = await socket.recv(decode=False)
                if not self._is_closed:
                    self._listener.received(self._link, data)
        except ConnectionClosed as closed:
            return closed.sent is None or closed.sent.code != CloseCode.MESSAGE_TOO_BIG
        return True

    async def _write(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            while True:
                await socket.send(await self._outgoing.get(), text=True)


def socket_url(url: str) -> str:
    """``http://host:port`` as the address of the broker's WebSocket."""
    base = url.rstrip("/")
    for plain, socket in (("http://", "ws://"), ("https://", "wss://")):
        if base.startswith(plain):
            base = socket + base.removeprefix(plain)
    return f"{base}/connect"
