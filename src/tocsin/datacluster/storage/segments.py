"""The segment files of a record log: frames one after the other, found again by their sequence numbers."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.storage import frames
from tocsin.datacluster.storage.frames import Frame
from tocsin.datacluster.storage.idempotency import RememberedKeys
from tocsin.errors import Corrupt

SUFFIX = ".log"
_DAMAGED = ".damaged"


@dataclass(frozen=True, slots=True)
class FrameRef:
    """Where a frame lies, and what it covers."""

    offset: int
    first_seq: int
    last_seq: int
    time_us: int
    size_bytes: int


@dataclass(slots=True)
class Segment:
    path: Path
    first_seq: int
    refs: list[FrameRef]
    size_bytes: int

    @property
    def last_seq(self) -> int:
        return self.refs[-1].last_seq if self.refs else self.first_seq - 1

    def add(self, frame: Frame) -> None:
        ref = FrameRef(self.size_bytes, frame.first_seq, frame.last_seq, frame.time_us, frame.size_bytes)
        self.refs.append(ref)
        self.size_bytes += frame.size_bytes


def opened(path: Path, keys: RememberedKeys) -> Segment:
    """Check a segment's frames, up to its end or a torn write."""
    segment = Segment(path, int(path.stem), [], 0)
    data = memoryview(path.read_bytes())
    expected = segment.first_seq
    while segment.size_bytes < len(data):
        frame = frames.decode(data, segment.size_bytes)
        if frame is None or frame.first_seq != expected:
            if frame is not None or frames.was_synced(data, segment.size_bytes):
                raise Corrupt(f"{path}: the frame at offset {segment.size_bytes} does not verify")
            break
        segment.add(frame)
        keys.remember(frame)
        expected = frame.last_seq + 1
    return segment


def whole(segment: Segment) -> int:
    """Open a segment to append to it, cut off behind its last frame."""
    handle = os.open(segment.path, os.O_RDWR | os.O_CREAT, 0o644)
    os.ftruncate(handle, segment.size_bytes)
    os.fsync(handle)
    return handle


def set_aside(segment: Segment) -> str:
    """Keep a copy of a segment that holds more than whole frames, durably; its name, empty where it does not."""
    data = segment.path.read_bytes()
    if len(data) == segment.size_bytes:
        return ""
    copy = segment.path.with_name(segment.path.name + _DAMAGED)
    with copy.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return copy.name


def read(segment: Segment, after: int, through: int) -> Iterator[Frame]:
    """The frames that hold anything in (after, through]."""
    refs = segment.refs
    start = bisect_left(refs, after + 1, key=lambda ref: ref.last_seq)
    with segment.path.open("rb") as file:
        for ref in refs[start:]:
            if ref.first_seq > through:
                return
            file.seek(ref.offset)
            frame = frames.decode(memoryview(file.read(ref.size_bytes)), 0)
            if frame is None:
                raise Corrupt(f"{segment.path}: the frame at offset {ref.offset} does not verify")
            yield frame


def write_all(handle: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written
