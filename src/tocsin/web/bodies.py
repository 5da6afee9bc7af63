"""Reading request bodies with hard bounds, after the caller is known, and decoding them strictly.

A body over its limit is refused from its declared length, or at the first byte too many if it declares
none; a compressed one is held to the same limit when it is inflated. Unknown members of a JSON body are
refused, since they are misspelt ones more often than not.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol, TypeVar

import anyio
import msgspec
from starlette.requests import Request

from tocsin.errors import LimitExceeded
from tocsin.web.problems import InvalidRequest, MalformedBody, SlowBody, UnsupportedBody

T = TypeVar("T")

JSON = ("application/json",)
IDENTITY, GZIP = "identity", "gzip"
LINES = ("application/x-ndjson", "application/jsonl", "application/json", "text/plain")
CSV = "text/csv"
MAX_MEMBERS = 1000  # each costs time without a byte of content
_PIECE_BYTES = 1 << 16


class BodyLimits(Protocol):
    @property
    def body_bytes(self) -> int: ...

    @property
    def body_timeout_s(self) -> float: ...


async def read_json(request: Request, kind: type[T], limits: BodyLimits) -> T:
    """The body as ``kind``."""
    check_media_type(request, JSON)
    encoding(request, (IDENTITY,))
    body = await read_bytes(request, limits.body_bytes, limits.body_timeout_s)
    return decode(body, kind)


async def read_bytes(
    request: Request, limit: int, timeout_s: float, count: Callable[[int], None] = lambda _: None
) -> bytes:
    """The whole body; ``count`` is told the size of each part before it is kept."""
    check_size(_declared(request), limit)
    try:
        with anyio.fail_after(timeout_s):
            return await _read(request, limit, count)
    except TimeoutError:
        raise SlowBody(f"the whole body has to arrive within {timeout_s:g} s") from None


async def _read(request: Request, limit: int, count: Callable[[int], None]) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        check_size(size, limit)
        count(len(part))
        parts.append(part)
    return b"".join(parts)


def check_size(size: int, limit: int) -> None:
    if size > limit:
        raise LimitExceeded("bytes in a request body", limit, size)


def check_items(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise LimitExceeded(what, limit, count)


def check_media_type(request: Request, known: tuple[str, ...]) -> str:
    """The type of the body; one without a declared type is taken for the first that is known."""
    declared = request.headers.get("content-type", known[0])
    found = declared.partition(";")[0].strip().lower()
    if found in known:
        return found
    raise UnsupportedBody(f"Content-Type: expected {' or '.join(known)}, got {declared!r:.120}")


def encoding(request: Request, known: tuple[str, ...] = (IDENTITY, GZIP)) -> str:
    """How the body is encoded; a way that is not known is refused, for it would be read as something else."""
    declared = request.headers.get("content-encoding", IDENTITY).strip().lower()
    if declared not in known:
        raise UnsupportedBody(f"Content-Encoding: expected {' or '.join(known)}, got {declared!r:.120}")
    return declared


def inflate(body: bytes, limit: int) -> bytes:
    """What gzip made ``body`` of, never more than ``limit`` bytes of it in memory."""
    parts, size, members, at = [], 0, 0, 0
    while at < len(body):
        members += 1
        check_items("gzip members in a request body", members, MAX_MEMBERS)
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        while not member.eof:
            part, at = _inflated(member, body, at, limit - size + 1)
            size += len(part)
            check_size(size, limit)
            parts.append(part)
    return b"".join(parts)


def _inflated(member: zlib._Decompress, body: bytes, at: int, most: int) -> tuple[bytes, int]:
    """What the next piece of the body gives, and where it ends. A piece is small, since zlib copies its rest."""
    piece = body[at : at + _PIECE_BYTES]
    if not piece:
        raise MalformedBody("expected gzip, got one that ends too early")
    try:
        part = member.decompress(piece, most)
    except zlib.error as error:
        raise MalformedBody(f"expected gzip: {error}") from None
    return part, at + len(piece) - len(member.unused_data)


def decode(body: bytes, kind: type[T]) -> T:
    """Strict JSON, or an error that says where it stopped and what was expected there."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
    except RecursionError:
        raise MalformedBody("expected JSON, got one that is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedBody(f"expected JSON in UTF-8: {error}") from None


def _declared(request: Request) -> int:
    length = request.headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdecimal() else 0
