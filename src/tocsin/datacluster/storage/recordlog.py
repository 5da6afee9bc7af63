"""An append-only log of frames in segment files, with group commit.

Whoever gets the write lock writes the frames of all who wait, with one sync for all of them; each is
told after the sync. A segment is named after its first sequence number and closed when it has grown
to ``segment_bytes``. On opening, a torn write at the end of the last segment is cut off; anything
else that does not verify is ``Corrupt``. A log that ends before a number that others have seen has
lost records: the hole is marked (``losses``) and its numbers are not given out again.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tocsin.clock import Clock
from tocsin.datacluster.storage import faults, losses, segments
from tocsin.datacluster.storage.files import is_full, make_directory, storage_full, sync_directory
from tocsin.datacluster.storage.frames import Frame
from tocsin.datacluster.storage.grouping import Placed, Show, Waiting, placed, settle
from tocsin.datacluster.storage.idempotency import Appended, RememberedKey, RememberedKeys
from tocsin.datacluster.storage.losses import Loss
from tocsin.datacluster.storage.segments import SUFFIX, FrameRef, Segment
from tocsin.errors import Corrupt, Unavailable


class RecordLog:
    """The log in ``directory``, whose next frame starts at ``head`` + 1, never at or before ``reached``.

    ``prepare`` is called with each frame before it is written and may refuse it by raising. What it
    returns makes the frame readable: it is called after the sync, in order, before ``head`` shows the
    frame. Both must be quick and must not append.
    """

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        keys: RememberedKeys,
        prepare: Callable[[Frame], Show | None],
        *,
        compacted_through: int = 0,
        reached: int = 0,
        segment_bytes: int = 64 << 20,
    ) -> None:
        make_directory(directory)
        self._directory, self._clock, self._keys, self._prepare = directory, clock, keys, prepare
        self._segment_bytes = segment_bytes
        self._pending: list[Waiting] = []
        self._pending_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._broken: str | None = None
        self._closed = False
        self._segments = [segments.opened(path, keys) for path in sorted(directory.glob(f"*{SUFFIX}"))]
        self.losses = losses.load(directory)
        self._check_order(compacted_through)
        lasts = [*(s.last_seq for s in self._segments), *(loss.last for loss in self.losses)]
        self._head = max((*lasts, compacted_through))
        if reached > self._head:
            self._skip(reached)
        self._file = self._open_active()

    @property
    def head(self) -> int:
        return self._head

    @property
    def start(self) -> int:
        """The first sequence number that the log still holds, or would hold."""
        return self._segments[0].first_seq

    def append(self, frame: Frame) -> Appended:
        """Make a frame durable under the next sequence numbers, or find what its key did before."""
        waiting = Waiting(frame)
        with self._pending_lock:
            self._pending.append(waiting)
        with self._write_lock:
            if waiting.done is None and waiting.error is None:
                self._flush()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.done is not None
        return waiting.done

    def read(self, after: int, through: int) -> Iterator[Frame]:
        """The frames that hold anything in (after, through], oldest first."""
        for segment in list(self._segments):
            if segment.last_seq > after and segment.first_seq <= through:
                yield from segments.read(segment, after, through)

    def refs(self) -> list[FrameRef]:
        return [ref for segment in list(self._segments) for ref in segment.refs]

    def time_of(self, seq: int) -> float | None:
        """When the record of that number became durable; of an older one that is no longer here, ``None``."""
        segments = list(self._segments)
        place = bisect_right(segments, seq, key=lambda segment: segment.first_seq) - 1
        refs = segments[place].refs if place >= 0 else []
        at = bisect_left(refs, seq, key=lambda ref: ref.last_seq)
        return refs[at].time_us / 1e6 if at < len(refs) else None

    def keys_through(self, seq: int) -> list[RememberedKey]:
        """The idempotency keys of the records up to ``seq``."""
        with self._write_lock:
            return self._keys.through(seq)

    def closed_through(self) -> int:
        """The last sequence number in a closed segment."""
        return self._segments[-1].first_seq - 1

    def roll(self) -> None:
        """Close the active segment, if anything is in it."""
        with self._write_lock:
            if self._segments[-1].refs:
                self._roll()

    def forget_losses(self, floor: int) -> None:
        """Retention has passed over everything up to ``floor``."""
        passed = [loss for loss in self.losses if loss.last <= floor]
        self.losses = tuple(loss for loss in self.losses if loss not in passed)
        losses.forget(self._directory, passed)

    def check_key(self, key: str, digest: str) -> None:
        """``KeyReused`` if the key is known with other content; waits for nobody."""
        self._keys.check(key, digest)

    def drop_through(self, seq: int) -> int:
        """Delete the closed segments that hold nothing after ``seq``; how many."""
        dropped = [s for s in self._segments[:-1] if s.last_seq <= seq]
        with self._write_lock:
            self._segments = [s for s in self._segments if s not in dropped]
        for segment in dropped:
            segment.path.unlink(missing_ok=True)
        if dropped:
            sync_directory(self._directory)
        return len(dropped)

    def paused(self) -> threading.Lock:
        """While this is held nothing is appended."""
        return self._write_lock

    def close(self) -> None:
        with self._write_lock:
            self._closed = True
            os.close(self._file)

    def _flush(self) -> None:
        """Commit everybody who waits as one group."""
        with self._pending_lock:
            group, self._pending = self._pending, []
        try:
            self._check_usable()
            start, now_us = self._segments[-1].size_bytes, int(self._clock.now() * 1e6)
            fresh, again = placed(group, self._head, now_us, start, self._keys, self._prepare)
            if fresh:
                self._write([one.frame for one in fresh])
                self._publish(fresh)
        except Exception as error:
            for waiting in group:
                waiting.error = waiting.error or error
            return
        settle(fresh, again, self._keys)

    def _write(self, group: list[Frame]) -> None:
        segment = self._segments[-1]
        data = b"".join(frame.encode() for frame in group)
        faults.point("log.before-write")
        try:
            segments.write_all(self._file, data, segment.size_bytes)
            faults.point("log.after-write")
            os.fdatasync(self._file)
        except OSError as error:
            self._undo(segment, error)
            raise (storage_full(segment.path) if is_full(error) else Unavailable(str(error))) from error

    def _publish(self, group: list[Placed]) -> None:
        """Show what is durable: first the records, then the head. A log that cannot accepts nothing more."""
        segment = self._segments[-1]
        try:
            faults.point("log.after-sync")
            for one in group:
                segment.add(one.frame)
                self._keys.remember(one.frame)
                if one.show is not None:
                    one.show()
            faults.point("log.before-head")
        except Exception as error:
            self._broken = f"records are durable that could not be shown ({error}); open it again to see them"
            self._check_usable()
        self._head = group[-1].frame.last_seq
        if segment.size_bytes >= self._segment_bytes:
            self._roll()

    def _undo(self, segment: Segment, error: OSError) -> None:
        """Take back what was written; where that fails, or the disk is ill, accept nothing more."""
        try:
            os.ftruncate(self._file, segment.size_bytes)
            os.fdatasync(self._file)
        except OSError as second:
            self._broken = str(second)
        if not is_full(error):
            self._broken = str(error)

    def _roll(self) -> None:
        """Go on in a new segment; where it cannot be made, go on in the old one."""
        segment = Segment(self._directory / f"{self._head + 1:020d}{SUFFIX}", self._head + 1, [], 0)
        handle = None
        try:
            handle = os.open(segment.path, os.O_RDWR | os.O_CREAT, 0o644)
            faults.point("log.roll")
            sync_directory(self._directory)
        except OSError:
            if handle is not None:
                os.close(handle)
            segment.path.unlink(missing_ok=True)
            return
        former, self._file = self._file, handle
        self._segments.append(segment)
        with suppress(OSError):  # everything in it is synced
            os.close(former)

    def _open_active(self) -> int:
        """The last segment without its torn end; a new one where there is none, or a hole behind it."""
        if self._segments and self._segments[-1].last_seq < self._head:
            os.close(segments.whole(self._segments[-1]))
        if not self._segments or self._segments[-1].last_seq < self._head:
            path = self._directory / f"{self._head + 1:020d}{SUFFIX}"
            self._segments.append(Segment(path, self._head + 1, [], 0))
        handle = segments.whole(self._segments[-1])
        sync_directory(self._directory)
        return handle

    def _skip(self, reached: int) -> None:
        """Go on behind ``reached``: what was acknowledged up to it is gone, its numbers are not free."""
        kept_as = segments.set_aside(self._segments[-1]) if self._segments else ""
        loss = Loss(self._head + 1, reached, kept_as)
        losses.note(self._directory, loss)
        self.losses = (*self.losses, loss)
        self._head = reached

    def _check_usable(self) -> None:
        if self._closed:
            raise Unavailable(f"the record log {self._directory} is closed")
        if self._broken:
            raise Unavailable(f"the record log {self._directory} stopped after a write error: {self._broken}")

    def _check_order(self, compacted_through: int) -> None:
        """Every number after the compacted ones must be there, and only the last segment may be torn."""
        expected = None
        for segment in self._segments:
            if expected is not None and segment.first_seq != expected:
                raise Corrupt(f"{segment.path}: expected to start with record {expected}")
            if segment is not self._segments[-1] and segment.size_bytes != segment.path.stat().st_size:
                raise Corrupt(f"{segment.path}: the frame at offset {segment.size_bytes} does not verify")
            expected = losses.after(self.losses, segment.last_seq + 1)
        if self._segments and self._segments[0].first_seq > losses.after(self.losses, compacted_through + 1):
            raise Corrupt(f"{self._directory}: the records after {compacted_through} are missing")
