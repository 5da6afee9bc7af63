"""Messages as JSON, and a message that many get as one WebSocket frame made once."""

from __future__ import annotations

import struct
from collections.abc import Callable

import msgspec

from tocsin.errors import BadArgument
from tocsin.protocol.messages import FromBroker, FromClient

_encode = msgspec.json.Encoder().encode
_from_client: Callable[[bytes | str], FromClient] = msgspec.json.Decoder(FromClient).decode
_from_broker: Callable[[bytes | str], FromBroker] = msgspec.json.Decoder(FromBroker).decode
_TEXT = 0x81  # final frame, text


def encoded(message: FromClient | FromBroker) -> bytes:
    return _encode(message)


def from_client(data: bytes | str) -> FromClient:
    """A client's message; BadArgument saying where it is wrong."""
    try:
        return _from_client(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadArgument("message", "a message of this protocol", str(problem)) from None


def from_broker(data: bytes | str) -> FromBroker:
    """A broker's message; BadArgument saying where it is wrong."""
    try:
        return _from_broker(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadArgument("message", "a message of this protocol", str(problem)) from None


def text_frame(body: bytes) -> bytes:
    """``body`` in one unmasked text frame, as a server sends it (RFC 6455, section 5.2)."""
    size = len(body)
    if size < 126:
        return bytes((_TEXT, size)) + body
    if size < 65536:
        return struct.pack("!BBH", _TEXT, 126, size) + body
    return struct.pack("!BBQ", _TEXT, 127, size) + body
