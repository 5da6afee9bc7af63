"""A broker and a coordinator that say exactly what a story tells them to, over real sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

WAIT_S = 20.0


class Peer:
    """One connection of the client under test, as its broker sees it."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._set_aside: list[dict[str, Any]] = []

    async def next(self, kind: str | None = None) -> dict[str, Any]:
        """The next message, or the next of a kind; others are kept for later."""
        for message in self._set_aside:
            if kind in (None, message["type"]):
                self._set_aside.remove(message)
                return message
        while True:
            message = json.loads(await asyncio.wait_for(self._socket.recv(), WAIT_S))
            if kind in (None, message["type"]):
                return message
            self._set_aside.append(message)

    async def send(self, *told: Mapping[str, Any]) -> None:
        for message in told:
            await self._socket.send(json.dumps(message))

    async def send_text(self, text: str) -> None:
        await self._socket.send(text)

    async def close(self, code: int, reason: str = "") -> None:
        await self._socket.close(code, reason)

    def abort(self) -> None:
        self._socket.transport.abort()

    async def closed(self) -> int | None:
        """Wait until the client has closed; with which code."""
        try:
            while True:
                self._set_aside.append(json.loads(await asyncio.wait_for(self._socket.recv(), WAIT_S)))
        except ConnectionClosed:
            return self._socket.close_code

    async def welcome(
        self, *told: Mapping[str, Any], login: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Answer the login with ``told`` as what stands; the login."""
        asked = dict(login or await self.next("login"))
        answer = {"type": "welcome", "request": asked["request"], "user": "ann", "broker": "b", "session": "s"}
        await self.send({**answer, "ping_s": 25.0, "subscriptions": list(told), **more})
        return asked

    async def subscribed(self, stream: str, position: str) -> dict[str, Any]:
        asked = await self.next("subscribe")
        await self.send(
            {"type": "subscribed", "request": asked["request"], "subscription": stands(asked, stream, position)}
        )
        return asked

    async def done(self, kind: str) -> dict[str, Any]:
        asked = await self.next(kind)
        await self.send({"type": "done", "request": asked["request"]})
        return asked


def stands(asked: Mapping[str, Any], stream: str, position: str, *, recovered: bool = True) -> dict[str, Any]:
    standing = {"id": asked["id"], "target": asked["target"], "stream": stream, "position": position}
    return standing if recovered else {**standing, "recovered": False}


def notification(stream: str, after: str, through: str, payload: Any = None) -> dict[str, Any]:
    told = through if payload is None else payload
    return {"type": "notification", "stream": stream, "after": after, "through": through, "payload": told}


def gap(stream: str, reason: str, *holes: tuple[str, str, int | None]) -> dict[str, Any]:
    told = [{"after": after, "through": through, "count": count} for after, through, count in holes]
    return {"type": "gap", "stream": stream, "holes": told, "reason": reason}


class Broker:
    def __init__(self) -> None:
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._server: Server | None = None
        self.port = 0
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await serve(
            self._accept, "127.0.0.1", self.port, subprotocols=[Subprotocol("tocsin.v1")], ping_interval=None
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Close everything; a client that tries to connect is refused."""
        if self._server:
            self._server.close(code=1001)
            await self._server.wait_closed()
            self._server = None

    async def peer(self) -> Peer:
        return await asyncio.wait_for(self._peers.get(), WAIT_S)

    async def _accept(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        assert socket.request.path == "/connect"
        assert socket.subprotocol == "tocsin.v1"
        self.connections += 1
        self._peers.put_nowait(Peer(socket))
        await socket.wait_closed()


class Coordinator:
    """Places everybody at ``place``; while that is a number, answers with that status. It does as it ``may_answer``."""

    def __init__(self) -> None:
        self.place: str | int = 503
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked: list[tuple[str, str, Any]] = []  # path, authorization, body
        self.url = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = json.loads(await reader.readexactly(int(fields.get("content-length", "0"))))
        self.asked.append((head[0].split(" ")[1], fields.get("authorization", ""), body))
        await self.may_answer.wait()
        status, answer = self._answer()
        data = json.dumps(answer).encode()
        top = f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(top.encode() + data)
        await writer.drain()
        writer.close()

    def _answer(self) -> tuple[int, dict[str, Any]]:
        if isinstance(self.place, int):
            return self.place, {"detail": f"scripted {self.place}"}
        told = {"user": "ann", "broker": "b", "url": self.place, "version": 1, "ticket": "t1", "reason": "nearest"}
        return 200, told


@asynccontextmanager
async def broker() -> AsyncIterator[Broker]:
    made = Broker()
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def coordinator() -> AsyncIterator[Coordinator]:
    made = Coordinator()
    server = await made.start()
    try:
        yield made
    finally:
        server.close()
