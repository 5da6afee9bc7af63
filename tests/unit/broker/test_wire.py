"""Whatever bytes come, the broker neither fails nor keeps more than it said it would."""

import asyncio
import contextlib
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from broker_world import SECRET, MemoryDirectory, MemoryTopics, run, token_of, world
from tocsin.broker.core import Core, Keys, Upstreams
from tocsin.broker.handshake import read_head, route
from tocsin.broker.listener import Front, Listener
from tocsin.broker.server import make_hub
from tocsin.config import Broker
from tocsin.protocol.codec import encoded
from tocsin.protocol.messages import Login
from tocsin.tokens import verify

OPENING = (
    b"GET /connect HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: tocsin.v1\r\n\r\n"
)
SETTINGS = replace(Broker(), max_message_bytes=2_000, max_messages_per_s=100.0)


class Socket:
    """A transport without a network. It remembers what was written and whether it is read, was closed or ended."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = self.is_ended = False
        self.is_read = True
        self.protocol: asyncio.Protocol | None = None

    def write(self, data: bytes) -> None:
        if self.is_ended:
            raise RuntimeError("Cannot call write() after write_eof()")
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def write_eof(self) -> None:
        self.is_ended = True

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.is_closed

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.Protocol | None:
        return self.protocol

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True


class Unrouted(asyncio.Protocol):
    """Where plain HTTP would go on."""


def listener() -> tuple[Core, Socket]:
    hub, topics = make_hub(SETTINGS), MemoryTopics()
    topics.delivery = hub
    keys = Keys(lambda token: verify(token, SECRET), SECRET)
    core = Core(SETTINGS, hub, Upstreams(topics, topics, topics, topics), MemoryDirectory("broker_1"), keys)
    socket = Socket()
    socket.protocol = Listener(Front(core, (), Unrouted))
    socket.protocol.connection_made(socket)  # type: ignore[arg-type]
    return core, socket


async def feed(socket: Socket, parts: list[bytes]) -> None:
    for part in parts:
        if not socket.is_closed and socket.is_read and part:
            socket.protocol.data_received(part)
            await asyncio.sleep(0)
    await asyncio.sleep(0)


def _tail(data: bytes) -> bytes:
    """Length, mask and payload as ``websockets`` writes them."""
    return Frame(Opcode.TEXT, data).serialize(mask=True)[1:]


frames = st.builds(
    lambda opcode, data, bits: bytes([bits | opcode]) + _tail(data),
    st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.CONT, Opcode.PING, Opcode.PONG, Opcode.CLOSE]),
    st.one_of(
        st.binary(max_size=100),
        st.sampled_from(
            [
                b'{"type":"login","request":1}',
                b'{"type":"ack","positions":{}}',
                b'{"type":"ping","request":1}',
                b'{"type":"publish","request":1,"topic":"","payload":' + b"[" * 900,
                b'{"type":"subscribe","request":1,"id":"","target":{"kind":"topic","name":"\\ud800"}}',
                b'{"type":"records","request":9999999999999999999,"dataset":"x","records":[1]}',
            ]
        ),
    ),
    st.sampled_from([0x80, 0x80, 0x80, 0x00, 0xC0]),  # final or not, or with a bit that nobody agreed on
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5))
@example([b"GET /connect HTTP/1.1\r\n\r\n"])
@example([b"GET /events?subscribe=%ff%7b HTTP/1.1\r\nLast-Event-ID: \xff\r\n\r\n"])
def test_any_bytes_as_a_first_request(parts):
    async def scenario():
        core, socket = listener()
        await feed(socket, parts)
        core.end_all()

    asyncio.run(scenario())


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(st.one_of(frames, st.binary(min_size=1, max_size=60)), max_size=12), st.data())
def test_any_bytes_on_an_open_connection(logs_in, parts, data):
    async def scenario():
        core, socket = listener()
        login = Frame(Opcode.TEXT, encoded(Login(1, token_of("ann")))).serialize(mask=True)
        stream = b"".join([login] if logs_in else []) + b"".join(parts)
        cut = data.draw(st.integers(0, len(stream)))
        await feed(socket, [OPENING, stream[:cut], stream[cut:]])
        assert socket.written.startswith(b"HTTP/1.1 101 ")
        socket.protocol.connection_lost(None)
        await asyncio.sleep(0)
        assert not core.outlets
        assert all(not user.sessions for user in core.users.all())

    asyncio.run(scenario())


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_a_head_is_parsed_or_refused(data):
    assert route(data) in (None, "", "/connect", "/events")
    with contextlib.suppress(ValueError):
        read_head(data)


def test_memory_stays_bounded_whatever_is_sent():
    """A message without end, in frames without end, and a head without end."""

    async def scenario():
        part = Frame(Opcode.CONT, b"x" * 500, fin=False).serialize(mask=True)
        first = Frame(Opcode.TEXT, b"x" * 500, fin=False).serialize(mask=True)
        empty = Frame(Opcode.CONT, b"", fin=False).serialize(mask=True)
        for pieces in (
            [OPENING, first, *[part] * 2000],
            [OPENING, first, *[empty] * 2000],
            [b"GET /connect?"] + [b"x" * 500] * 2000,
        ):
            core, socket = listener()
            tracemalloc.start()
            await feed(socket, pieces)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 200_000
            assert all(outlet.is_over or not socket.is_read for outlet in core.outlets)
            assert core.outlets or socket.is_closed

    asyncio.run(scenario())


def test_who_goes_on_sending_after_its_end_is_not_read():
    """It was read for as long as a peer may take to close, and kept the broker from everybody else."""

    async def scenario():
        _, socket = listener()
        not_a_login = Frame(Opcode.TEXT, b'{"type":"ping","request":1}').serialize(mask=True)
        await feed(socket, [OPENING, not_a_login])
        assert (4404).to_bytes(2) in socket.written
        assert socket.is_read
        assert not socket.is_ended
        await feed(socket, [Frame(Opcode.PONG, b"").serialize(mask=True) * 10_000])
        assert not socket.is_read
        assert socket.is_ended

    asyncio.run(scenario())


def test_a_long_read_is_parsed_by_parts():
    async def scenario():
        core, socket = listener()
        await feed(socket, [OPENING, Frame(Opcode.TEXT, encoded(Login(1, token_of("ann")))).serialize(mask=True)])
        for _ in range(20):
            await asyncio.sleep(0)
        socket.written = b""
        pings = [Frame(Opcode.TEXT, b'{"type":"ping","request":%d}' % n).serialize(mask=True) for n in range(150)]
        await feed(socket, [b"".join(pings) + b"\x89"])  # and the first byte of another
        assert not socket.is_read
        assert all(outlet.is_behind for outlet in core.outlets)
        while b'"request":149' not in socket.written:
            await asyncio.sleep(0.01)
        assert [socket.written.find(b'"request":%d}' % n) for n in range(150)] == sorted(
            socket.written.find(b'"request":%d}' % n) for n in range(150)
        )
        assert socket.is_read

    asyncio.run(scenario())


def test_a_text_frame_that_is_no_text_ends_its_sender():
    async def scenario():
        _, socket = listener()
        login = Frame(Opcode.TEXT, encoded(Login(1, token_of("ann")))).serialize(mask=True)
        await feed(socket, [OPENING, login])
        for _ in range(10):
            await asyncio.sleep(0)
        socket.written = b""
        bad = b'{"type":"publish","request":1,"topic":"t","payload":"\xff"}'
        await feed(socket, [Frame(Opcode.TEXT, bad).serialize(mask=True)])
        assert (4401).to_bytes(2) in socket.written

    asyncio.run(scenario())


@pytest.mark.parametrize("length", [b"\xff" * 8, (2**40).to_bytes(8)])
def test_what_comes_after_a_frame_that_is_refused_is_dropped(length):
    async def scenario():
        _, socket = listener()
        ping = Frame(Opcode.PING, b"x").serialize(mask=True)
        await feed(
            socket, [OPENING, b"\x81\xff" + length + b"mask", ping, Frame(Opcode.CLOSE, b"").serialize(mask=True)]
        )
        assert socket.is_ended
        assert socket.written.endswith((4402).to_bytes(2) + b"too-big")

    asyncio.run(scenario())


def test_a_head_without_an_end_is_refused():
    async def scenario():
        async with world(max_head_bytes=1000) as w:
            reader, writer = await asyncio.open_connection("127.0.0.1", w.server.port)
            writer.write(b"GET /connect HTTP/1.1\r\nX: " + b"x" * 1000)
            assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
            writer.close()

    run(scenario)
