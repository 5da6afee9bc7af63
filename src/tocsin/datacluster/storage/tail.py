"""The newest records of a dataset in memory, bounded by bytes, so that a tick reads no file."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tocsin.datacluster.storage.keyed import sequence

_OVERHEAD_BYTES = 2048  # what a table takes besides its values


@dataclass(frozen=True, slots=True)
class _Piece:
    first: int
    last: int
    table: pa.Table
    size_bytes: int


class Tail:
    """Tables of consecutive records, each with ``__seq``, of at most ``max_bytes`` together."""

    def __init__(self, head: int, max_bytes: int) -> None:
        self._pieces: list[_Piece] = []
        self._max_bytes, self._size_bytes = max_bytes, 0
        self._start = head + 1
        self._lock = threading.Lock()

    def add(self, table: pa.Table, first: int, last: int) -> None:
        piece = _Piece(first, last, table, table.nbytes + _OVERHEAD_BYTES)
        with self._lock:
            self._pieces.append(piece)
            self._size_bytes += piece.size_bytes
            if self._size_bytes > self._max_bytes:
                self._shrink()

    def read(self, after: int, through: int) -> tuple[int, int, list[pa.Table]]:
        """The first and the last number held, and the tables of what it holds in (after, through]."""
        with self._lock:
            begin = bisect_right(self._pieces, after, key=lambda p: p.last)
            end = bisect_right(self._pieces, through, key=lambda p: p.first)
            last = self._pieces[-1].last if self._pieces else self._start - 1
            return self._start, last, [cut(p.table, after, through) for p in self._pieces[begin:end]]

    def _shrink(self) -> None:
        """Let the oldest go, a tenth more than needed, so that it is seldom."""
        count = 0
        while self._size_bytes > 0.9 * self._max_bytes and count < len(self._pieces):
            self._size_bytes -= self._pieces[count].size_bytes
            count += 1
        self._start = self._pieces[count - 1].last + 1
        del self._pieces[:count]

    def convert(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put every table into another form with the same rows."""
        with self._lock:
            self._pieces = [_Piece(p.first, p.last, change(p.table), p.size_bytes) for p in self._pieces]


def cut(table: pa.Table, after: int, through: int) -> pa.Table:
    """The rows with numbers in (after, through] of a table in the order of its numbers."""
    seq = sequence(table)
    if not len(seq) or (seq[0] > after and seq[-1] <= through):
        return table
    start, end = seq.searchsorted([after, through], side="right")
    return table.slice(start, max(0, end - start))
