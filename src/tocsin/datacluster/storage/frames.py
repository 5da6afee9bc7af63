"""The frame: one durable batch in a record log.

A frame is a fixed header, the batch's idempotency key and its body. The checksum covers all three
(its own field counted as zero), so key and records stand or fall together. ``group_start`` is the
offset in the file where the group commit began that wrote the frame: everything before it was
synced. A frame that does not verify is therefore a torn write only if no later frame says that its
place had been synced.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from enum import IntEnum

MAGIC = b"tocl"
VERSION = 1
_HEADER = struct.Struct("<4sBBHIIQQIqQ")
HEADER_BYTES = _HEADER.size
MAX_KEY_BYTES = 0xFFFF


class Kind(IntEnum):
    RECORDS = 0
    DELETIONS = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """``body`` is one Arrow record batch without its schema, whose version is ``schema_version``."""

    kind: Kind
    schema_version: int
    first_seq: int
    count: int
    time_us: int
    key: bytes
    body: bytes | memoryview
    group_start: int = 0

    @property
    def last_seq(self) -> int:
        return self.first_seq + self.count - 1

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + len(self.key) + len(self.body)

    def encode(self) -> bytes:
        crc = zlib.crc32(self.body, zlib.crc32(self.key, zlib.crc32(self._header(0))))
        return b"".join((self._header(crc), self.key, self.body))

    def placed(self, first_seq: int, time_us: int, group_start: int) -> Frame:
        return replace(self, first_seq=first_seq, time_us=time_us, group_start=group_start)

    def _header(self, crc: int) -> bytes:
        return _HEADER.pack(
            *(MAGIC, VERSION, self.kind, len(self.key), crc, self.schema_version, len(self.body)),
            *(self.first_seq, self.count, self.time_us, self.group_start),
        )


def decode(data: memoryview, offset: int) -> Frame | None:
    """The frame at ``offset``, or ``None`` if there is no whole frame that verifies."""
    if len(data) - offset < HEADER_BYTES:
        return None
    magic, version, kind, key_length, crc, *fields = _HEADER.unpack_from(data, offset)
    schema, length, first, count, time_us, group = fields
    if magic != MAGIC or version != VERSION or kind not in tuple(Kind):
        return None
    key_at = offset + HEADER_BYTES
    body_at = key_at + key_length
    if body_at + length > len(data):
        return None
    key, body = bytes(data[key_at:body_at]), data[body_at : body_at + length]
    frame = Frame(Kind(kind), schema, first, count, time_us, key, body, group)
    expected = zlib.crc32(body, zlib.crc32(key, zlib.crc32(frame._header(0))))
    return frame if expected == crc else None


def was_synced(data: memoryview, offset: int) -> bool:
    """Whether a frame after ``offset`` says that what lies there had been synced."""
    whole = bytes(data)
    at = whole.find(MAGIC, offset + 1)
    while at >= 0:
        found = decode(data, at)
        if found is not None and found.group_start > offset:
            return True
        at = whole.find(MAGIC, at + 1)
    return False
