"""One subscriber's WebSocket: frames in, messages to the session; frames of the hub out as they are.

Frames that come are parsed by ``websockets``' sans-I/O protocol; those that go are made by ``text_frame``.
A connection has no task of its own, and a timer only while it sends too fast: the wheel looks at it when it is due.
What it costs is bounded: a message by ``max_message_bytes``, frames a second by ``max_messages_per_s``, requests under
way by ``max_requests``, what was read and is not parsed yet by one read of its socket.

Who sends faster than that is read more slowly, and not closed: a client cannot know how much of what it sent waits
in the network, or in a broker that was busy, and would be punished for our pause. What is not read stays with the
client, whose socket takes no more. That is not its silence. A long read is parsed by parts, others in between.

After the end only the answer to our close counts. Who goes on sending instead, more than a part, is not read any more.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from tocsin.broker.entries import Entry, frame_of
from tocsin.broker.handshake import wire_log
from tocsin.broker.outlet import Outlet
from tocsin.broker.session import Session
from tocsin.protocol.codec import encoded, text_frame
from tocsin.protocol.codes import BAD_MESSAGE, INTERNAL, SILENT, TOO_BIG, Code
from tocsin.protocol.messages import FromBroker

if TYPE_CHECKING:
    from tocsin.broker.core import Core

log = logging.getLogger(__name__)
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)
_SHORTEST_FRAME = 6  # bytes of a client's frame: its head and its mask
_PART = 512  # bytes that are parsed at the least: some frames too many are worth not going by single bytes
_TURN = 8_000  # bytes that are parsed before others have their turn
_PAUSE_S = 0.02  # at the least, so that who is slowed down wakes us seldom


class Connection(Outlet):
    __slots__ = (
        "_allowance", "_counted_at", "_descriptor", "_heard_at", "_is_half_closed", "_is_held", "_is_slowed", "_parser",
        "_parts", "_unread",
    )  # fmt: skip

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._parser = ServerProtocol(state=OPEN, max_size=core.settings.max_message_bytes, logger=wire_log)
        self._parts: bytearray | None = None  # of a message in several frames
        self._heard_at = self._counted_at = core.now()
        self._descriptor: int | None = None
        self._allowance = 2 * core.settings.max_messages_per_s
        self._is_half_closed = False
        self._is_held = False  # as many requests are under way as allowed
        self._is_slowed = False  # a timer goes on with what came too fast, or is long
        self._unread: bytes | None = None  # waits to be parsed for one of these reasons
        self.session = Session(core, self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._descriptor = _plain_socket(self.transport)
        is_direct = self._descriptor is not None  # then whatever the transport has to hold makes the connection slow
        self.transport.set_write_buffer_limits(high=0 if is_direct else self.core.settings.write_buffer)
        self.core.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._over()
        self.core.closed(self)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self.core.now()
        if self._unread is None:
            self._read(data)
        else:  # it was on its way when reading was paused
            self._unread += data

    def eof_received(self) -> None:
        self._parser.receive_eof()
        super().eof_received()

    # --- out ----------------------------------------------------------------------------------------------

    @property
    def descriptor(self) -> int | None:
        return self._descriptor if self._outbox is None and not self.is_over else None

    def encode(self, entries: Iterable[Entry]) -> bytes:
        return b"".join([frame_of(e) for e in entries])

    def say(self, message: FromBroker) -> None:
        self._control(text_frame(encoded(message)))

    def end(self, code: Code) -> None:
        if self.is_over:
            return
        self._finish()
        self.core.ended(code)
        if self._parser.state is OPEN and self._parser.parser_exc is None and self._unread is None:
            self._parser.send_close(code.number, code.name)
            self._reply()
        else:  # the parser has made a close frame of its own, and ours says more; or it will not see the answer
            frame = Frame(Opcode.CLOSE, code.number.to_bytes(2) + code.name.encode())
            self.transport.write(frame.serialize(mask=False))
            self._half_close()

    def due(self, now: float) -> float | None:
        """End what is too old, or silent for too long."""
        if self.is_over:
            return self._finished(now)
        deadline, code = self.session.deadline()
        heard_at = now if self._is_held or self._unread is not None else self._heard_at
        silent_at = heard_at + self.core.settings.idle_timeout
        if silent_at < deadline:
            deadline, code = silent_at, SILENT
        if now < deadline:
            return deadline
        self.end(code)
        return self._closes_at

    def trust(self) -> None:
        self._parser.max_message_size = 2 * self.core.settings.max_message_bytes

    # --- in -----------------------------------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        return self._unread is not None

    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        if self._unread is not None and not is_held:
            self._go_on()
        self._sort_reading()

    def _read(self, data: bytes) -> None:
        """Parse as much as is allowed now; the rest waits."""
        room = self._room()
        if room:
            self._parse(data[:room])
        if room < len(data):
            self._wait(data[room:])

    def _parse(self, data: bytes) -> None:
        self._parser.receive_data(data)
        for event in self._parser.events_received():
            self._allowance -= 1
            if isinstance(event, Frame) and not self.is_over:
                self._received(event)
        problem = self._parser.parser_exc
        if problem is not None and not self.is_over:
            self.end(TOO_BIG if isinstance(problem, PayloadTooBig) else BAD_MESSAGE)
        else:
            self._reply()

    def _room(self) -> int:
        """Bytes that hold no more frames than a bucket does, of two seconds' worth and filled at the allowed rate."""
        if self._is_held:
            return 0
        if self.session.is_peer:
            return sys.maxsize
        rate, now = self.core.settings.max_messages_per_s, self.core.now()
        elapsed, self._counted_at = now - self._counted_at, now
        self._allowance = min(max(2 * rate, 1.0), self._allowance + elapsed * rate)
        return min(_TURN, max(_PART, int(self._allowance) * _SHORTEST_FRAME)) if self._allowance >= 1 else 0

    def _wait(self, rest: bytes) -> None:
        self._unread = rest
        self._sort_reading()
        if self.is_over:
            self._half_close()
        elif not self._is_held and not self._is_slowed:
            self._is_slowed = True
            lacks_s = (1 - self._allowance) / self.core.settings.max_messages_per_s
            asyncio.get_running_loop().call_later(max(_PAUSE_S, lacks_s) if lacks_s > 0 else 0, self._no_longer_slowed)

    def _no_longer_slowed(self) -> None:
        self._is_slowed = False
        self._go_on()

    def _go_on(self) -> None:
        if self._unread is not None and not self.is_over:
            rest, self._unread = self._unread, None
            self._heard_at = self.core.now()
            self._read(rest)
            self._sort_reading()

    def _sort_reading(self) -> None:
        if self.transport.is_closing():
            return
        if self._is_held or self._unread is not None:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _received(self, frame: Frame) -> None:
        if frame.opcode in _DATA:
            self._assemble(frame)
        elif frame.opcode is Opcode.CLOSE:
            self._finish()

    def _assemble(self, frame: Frame) -> None:
        message = bytes(frame.data)
        if self._parts is not None or not frame.fin:
            self._parts = (self._parts or bytearray()) + message
            if not frame.fin:
                return
            message, self._parts = bytes(self._parts), None
        try:
            message.decode()  # what is published goes out to others in text frames, which have to be UTF-8
        except UnicodeDecodeError:
            self.end(BAD_MESSAGE)
            return
        try:
            self.session.receive(message)
        except Exception:
            log.exception("a message could not be handled")
            self.end(INTERNAL)

    def _reply(self) -> None:
        """Send what the parser has to say: pongs, and the closing handshake."""
        for data in self._parser.data_to_send():
            if self._is_half_closed:
                continue  # ours was the last word
            if not data:
                self.transport.close()
            elif self.is_over:
                self.transport.write(data)
            else:
                self._control(data)

    def _half_close(self) -> None:
        """No more from us. The transport stays open for a while, for a reset could overtake the close frame."""
        if self._is_half_closed:
            return
        self._is_half_closed = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over, self._is_held = True, False
            self.session.left()
            self._sort_reading()
            self._outbox = None
            self._wake()


def _plain_socket(transport: asyncio.Transport) -> int | None:
    """The descriptor of a connection without TLS."""
    socket = transport.get_extra_info("socket")
    is_plain = socket is not None and transport.get_extra_info("sslcontext") is None
    return int(socket.fileno()) if is_plain else None
