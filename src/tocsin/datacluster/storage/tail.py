"""The newest records of a dataset in memory, bounded by bytes, so that a tick reads no file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tocsin.datacluster.storage.keyed import sequence


@dataclass(frozen=True, slots=True)
class _Piece:
    first: int
    last: int
    table: pa.Table
    size_bytes: int


class Tail:
    """Tables of consecutive records, each with ``__seq``; ``start`` is the first number it holds."""

    def __init__(self, head: int, max_bytes: int) -> None:
        self._pieces: deque[_Piece] = deque()
        self._max_bytes, self._size_bytes = max_bytes, 0
        self._start = head + 1
        self._lock = threading.Lock()

    def add(self, table: pa.Table, first: int, last: int) -> None:
        with self._lock:
            self._pieces.append(_Piece(first, last, table, table.nbytes))
            self._size_bytes += table.nbytes
            while self._size_bytes > self._max_bytes:
                gone = self._pieces.popleft()
                self._size_bytes -= gone.size_bytes
                self._start = gone.last + 1

    def read(self, after: int, through: int) -> tuple[int, list[pa.Table]]:
        """The first number held, and the tables of what it holds in (after, through]."""
        with self._lock:
            found = [p for p in self._pieces if p.last > after and p.first <= through]
            return self._start, [cut(p.table, after, through) for p in found]

    def convert(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Put every table into another form with the same rows."""
        with self._lock:
            self._pieces = deque(_Piece(p.first, p.last, change(p.table), p.size_bytes) for p in self._pieces)


def cut(table: pa.Table, after: int, through: int) -> pa.Table:
    """The rows with numbers in (after, through] of a table in the order of its numbers."""
    seq = sequence(table)
    if not len(seq) or (seq[0] > after and seq[-1] <= through):
        return table
    start, end = seq.searchsorted([after, through], side="right")
    return table.slice(start, max(0, end - start))
