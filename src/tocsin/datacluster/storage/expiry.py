"""Up to which sequence number a dataset's retention lets records go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.datacluster.storage.keyed import Indices
from tocsin.datacluster.storage.manifest import SeqTime
from tocsin.model.catalog import Retention

_TIMES_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of records that take ``size_bytes`` together, each the same."""

    first: int
    last: int
    size_bytes: int

    def newest(self, room_bytes: int) -> int:
        """How many of its records have room."""
        return (self.last - self.first + 1) * room_bytes // self.size_bytes


def floor_by_age(retain: Retention, times: Iterable[SeqTime], now: float) -> int:
    if retain.age_s is None:
        return 0
    oldest_us = (now - retain.age_s) * 1e6
    return max((t.seq for t in times if t.time_us < oldest_us), default=0)


def appended_floor(retain: Retention, head: int, pieces: Sequence[Piece]) -> int:
    """For an appending dataset: by count exactly, by bytes about, newest first."""
    floor = max(0, head - retain.records) if retain.records is not None else 0
    if retain.size_bytes is None:
        return floor
    room = retain.size_bytes
    for piece in sorted(pieces, key=lambda p: p.last, reverse=True):
        if piece.size_bytes > room:
            return max(floor, piece.last - piece.newest(room))
        room -= piece.size_bytes
    return floor


def keyed_floor(retain: Retention, seqs: Indices, size_bytes: int) -> int:
    """For a keyed dataset: the keys changed longest ago go first; bytes are taken as equal per key."""
    count = len(seqs)
    keep = count if retain.records is None else min(count, retain.records)
    if retain.size_bytes is not None and size_bytes > retain.size_bytes:
        keep = min(keep, count * retain.size_bytes // size_bytes)
    if keep >= count:
        return 0
    return int(np.partition(seqs, count - keep - 1)[count - keep - 1])


def coarse(times: Sequence[SeqTime], retain: Retention) -> tuple[SeqTime, ...]:
    """Fewer entries, as many as the retention's age needs to be told within a thousandth."""
    if retain.age_s is None:
        return ()
    step_us = retain.age_s * 1e6 / _TIMES_KEPT
    kept: list[SeqTime] = []
    for entry in times:
        if len(kept) > 1 and entry.time_us - kept[-2].time_us < step_us:
            kept[-1] = entry
        else:
            kept.append(entry)
    return tuple(kept)
