from __future__ import annotations

import asyncio

import pytest

from tocsin.errors import Unavailable
from tocsin.live.link import Link, frame_at
from tocsin.protocol.codec import text_frame

BODIES = [b"", b"a" * 125, b"b" * 126, b"c" * 65_536]


@pytest.mark.parametrize("step", [1, 7, 4096, 200_000])
def test_bodies_come_whole_however_they_are_cut(step: int) -> None:
    async def heard() -> list[bytes]:
        found: list[bytes] = []
        link = Link("host", lambda _, body: found.append(body), lambda _: None)
        data = b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"".join(map(text_frame, BODIES))
        for at in range(0, len(data), step):
            link.data_received(data[at : at + step])
        return found

    assert asyncio.run(heard()) == BODIES


def test_a_frame_that_is_not_whole_is_waited_for() -> None:
    frame = text_frame(b"x" * 300)
    assert [frame_at(frame[:size], 0) for size in (0, 1, 3, 4, 303)] == [None] * 5
    assert frame_at(frame, 0) == (4, 304)


def test_a_broker_that_refuses_is_told_of() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def opened() -> None:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await Link.open(f"http://127.0.0.1:{port}", lambda *_: None, lambda _: None)

    with pytest.raises(Unavailable, match="400 Bad Request"):
        asyncio.run(opened())
