"""One subscriber's WebSocket: frames in, messages to the session; frames of the hub out as they are.

Frames that come are parsed by ``websockets``' sans-I/O protocol; those that go are made by ``text_frame``.
A connection has no task and no timer of its own: the wheel looks at it when it is due. What it costs is
bounded: a message by ``max_message_bytes``, frames a second by ``max_messages_per_s``, requests under way by
``max_requests``.
"""

from __future__ import annotations

import asyncio
import logging
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
from tocsin.protocol.codes import BAD_MESSAGE, INTERNAL, SILENT, TOO_BIG, TOO_MANY, Code
from tocsin.protocol.messages import FromBroker

if TYPE_CHECKING:
    from tocsin.broker.core import Core

log = logging.getLogger(__name__)
_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class Connection(Outlet):
    __slots__ = (
        "_allowance", "_counted_at", "_descriptor", "_heard_at", "_is_half_closed", "_parser", "_parts",
    )  # fmt: skip

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._parser = ServerProtocol(state=OPEN, max_size=core.settings.max_message_bytes, logger=wire_log)
        self._parts: bytearray | None = None  # of a message in several frames
        self._heard_at = self._counted_at = core.now()
        self._descriptor: int | None = None
        self._allowance = 2 * core.settings.max_messages_per_s
        self._is_half_closed = False
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
        self._parser.receive_data(data)
        for event in self._parser.events_received():
            if isinstance(event, Frame) and not self.is_over:
                self._received(event)
        problem = self._parser.parser_exc
        if problem is not None and not self.is_over:
            self.end(TOO_BIG if isinstance(problem, PayloadTooBig) else BAD_MESSAGE)
        else:
            self._reply()

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
        if self._parser.state is OPEN and self._parser.parser_exc is None:
            self._parser.send_close(code.number, code.name)
            self._reply()
        else:  # the parser has given up and made a close frame of its own; ours says more
            frame = Frame(Opcode.CLOSE, code.number.to_bytes(2) + code.name.encode())
            self.transport.write(frame.serialize(mask=False))
            self._half_close()

    def due(self, now: float) -> float | None:
        """End what is too old, or silent for too long."""
        if self.is_over:
            return self._finished(now)
        deadline, code = self.session.deadline()
        silent_at = self._heard_at + self.core.settings.idle_timeout
        if silent_at < deadline:
            deadline, code = silent_at, SILENT
        if now < deadline:
            return deadline
        self.end(code)
        return self._closes_at

    def trust(self) -> None:
        self._parser.max_message_size = 2 * self.core.settings.max_message_bytes

    # --- in -----------------------------------------------------------------------------------------------

    def _received(self, frame: Frame) -> None:
        if not self._is_allowed():
            self.end(TOO_MANY)
        elif frame.opcode in _DATA:
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

    def _is_allowed(self) -> bool:
        """Count one frame: a bucket that holds two seconds' worth, filled at the allowed rate."""
        rate = self.core.settings.max_messages_per_s
        elapsed, self._counted_at = self._heard_at - self._counted_at, self._heard_at
        self._allowance = min(2 * rate, self._allowance + elapsed * rate) - 1
        return self._allowance >= 0 or self.session.is_peer

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
        """No more from us. What still comes is read and dropped, for a reset could overtake the close frame."""
        self._is_half_closed = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    def _over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.session.left()
            self._outbox = None
            self._wake()


def _plain_socket(transport: asyncio.Transport) -> int | None:
    """The descriptor of a connection without TLS."""
    socket = transport.get_extra_info("socket")
    is_plain = socket is not None and transport.get_extra_info("sslcontext") is None
    return int(socket.fileno()) if is_plain else None
