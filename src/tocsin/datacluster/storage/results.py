"""Serving results by position, and letting old ones go.

A position names an execution and a row in it; the rows of an execution count from 1 in the order of
``ResultRows``. A page walks from a position on, asks which backend subscriptions are wanted, and
touches only the rows that have one. Reading needs the ledger and memory-mapped files, nothing else.

An execution whose file is missing or damaged is told as a gap, like one that retention took. A gap
stands at the beginning of a page: a page ends before such an execution, and the next one begins with it.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np

from tocsin.datacluster.storage import catalog, faults, leftovers, retention
from tocsin.datacluster.storage.executions import ResultFile
from tocsin.datacluster.storage.resultfiles import (
    RESULT_SCHEMA,
    Numbers,
    ResultRows,
    result_path,
    write_result_file,
)
from tocsin.datacluster.storage.retention import Gap
from tocsin.datacluster.storage.transaction import Transactions, Tx
from tocsin.errors import Corrupt, Unavailable
from tocsin.model.catalog import Retention
from tocsin.model.position import Position

__all__ = [
    "RESULT_SCHEMA",
    "Gap",
    "ResultFile",
    "ResultPage",
    "ResultRow",
    "ResultStore",
    "result_path",
    "row_id",
    "write_result_file",
]

log = logging.getLogger(__name__)

Wanted = Callable[[int, Numbers], Numbers]
"""(execution number, backend numbers) to a mask of those wanted."""

_BLOCK_PAIRS = 1 << 20
_EXECUTIONS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One payload and who of the wanted gets it. A notification's id is ``row_id`` + '-' + number."""

    position: Position
    row_id: str
    backends: list[int]
    payload: bytes


@dataclass(frozen=True, slots=True)
class ResultPage:
    """The wanted rows in (after, through]; ``is_end`` when nothing committed lies beyond."""

    after: Position
    through: Position
    rows: list[ResultRow]
    is_end: bool
    gap: Gap | None


@dataclass(frozen=True, slots=True)
class _Committed:
    no: int
    bounds: str
    result_rows: int
    files: tuple[str | bytes, ...]  # names, or the contents of those that are kept in the ledger


@dataclass(slots=True)
class _Page:
    """A page being filled."""

    max_rows: int
    max_bytes: int
    rows: list[ResultRow] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, row: ResultRow) -> bool:
        """Take one more row; false when it must wait for the next page. The first always fits."""
        if self.rows and (len(self.rows) >= self.max_rows or self.size_bytes + len(row.payload) > self.max_bytes):
            return False
        self.rows.append(row)
        self.size_bytes += len(row.payload)
        return True


class ResultStore:
    """The results under ``root``; ``max_open`` executions stay mapped."""

    def __init__(self, root: Path, ledger: Transactions, max_open: int = 32) -> None:
        self._root, self._ledger, self._max_open = Path(root), ledger, max_open
        self._open: OrderedDict[tuple[int, int], ResultRows] = OrderedDict()
        self._lock = threading.Lock()
        self._lost: dict[tuple[int, int], int] = {}

    def page(
        self, channel_id: int, after: Position, wanted: Wanted, max_rows: int = 1000, max_bytes: int = 8 << 20,
        through: Position | None = None,
    ) -> ResultPage:  # fmt: skip
        """The wanted rows after a position (and not beyond ``through``), as many as fit."""
        while True:
            try:
                return self._page(channel_id, after, wanted, _Page(max_rows, max_bytes), through)
            except _Expired:
                continue  # retention was faster; the ledger knows now

    def expire(self, channel_id: int, retain: Retention, now: float) -> int:
        """Forget results past retention, then delete their files; how many files."""
        if not self._ledger.read(lambda tx: retention.due(tx, channel_id, retain, now)):
            return 0
        names = self._ledger.write(lambda tx: retention.forget(tx, channel_id, retain, now))
        expired = self._ledger.read(lambda tx: retention.progress(tx, channel_id)).expired
        self._forget_lost(lambda channel, no: channel == channel_id and no <= expired)
        faults.point("expire.before-delete")
        for name in names:
            (self._root / name).unlink(missing_ok=True)
        return len(names)

    def sweep(self) -> int:
        """Delete files that no execution will ever name; how many. What dropped channels had lost is forgotten."""
        channels = {row.id for row in self._ledger.read(catalog.list_channels)}
        self._forget_lost(lambda channel, _: channel not in channels)
        return leftovers.sweep(self._root, self._ledger)

    def lost_rows(self, channel_id: int) -> int:
        """Rows that were found unreadable though retention keeps them."""
        with self._lock:
            return sum(rows for (channel, _), rows in self._lost.items() if channel == channel_id)

    def close(self) -> None:
        with self._lock:
            self._open.clear()

    def _forget_lost(self, is_over: Callable[[int, int], bool]) -> None:
        with self._lock:
            self._lost = {key: rows for key, rows in self._lost.items() if not is_over(*key)}

    def _page(
        self, channel_id: int, after: Position, wanted: Wanted, page: _Page, limit: Position | None
    ) -> ResultPage:
        head, gap, found = self._ledger.read(lambda tx: _committed(tx, channel_id, after))
        cursor = max(after, gap.through) if gap else after
        for execution in found:
            if limit is not None and execution.no > limit.execution:
                return ResultPage(after, max(cursor, limit), page.rows, False, gap)
            rows = self._readable(channel_id, execution)
            if rows is None and page.rows:
                return ResultPage(after, cursor, page.rows, False, gap)
            if rows is None:
                gap = _widened(gap, cursor, execution)
            elif (stop := self._fill(page, channel_id, execution, rows, cursor, wanted, limit)) is not None:
                return ResultPage(after, stop, page.rows, False, gap)
            cursor = Position.end_of(execution.no)
        is_end = len(found) < _EXECUTIONS_AT_ONCE
        last = Position.end_of(head) if is_end and head else cursor
        through = max(cursor, last if limit is None else min(last, limit))
        return ResultPage(after, through, page.rows, is_end, gap)

    def _fill(
        self, page: _Page, channel_id: int, execution: _Committed, rows: ResultRows, after: Position,
        wanted: Wanted, limit: Position | None,
    ) -> Position | None:  # fmt: skip
        """Add the wanted rows of one execution; where to stop if the page is full or the limit passed."""
        start = after.row if after.execution == execution.no else 0
        end = min(len(rows), limit.row) if limit is not None and execution.no == limit.execution else len(rows)
        for first, last in _blocks(rows, min(start, len(rows)), end):
            for index, backends in _matches(rows, first, last, execution.no, wanted):
                position = Position(execution.no, index + 1)
                name = row_id(channel_id, execution.bounds, int(rows.seq[index]), int(rows.ord[index]))
                if not page.add(ResultRow(position, name, backends, rows.payload(index))):
                    return page.rows[-1].position
        return limit if limit is not None and execution.no == limit.execution else None

    def _readable(self, channel_id: int, execution: _Committed) -> ResultRows | None:
        """The rows, or ``None`` where they are lost; a whole directory that is away loses nothing."""
        try:
            rows = self._rows(channel_id, execution)
        except (OSError, Corrupt) as problem:
            if isinstance(problem, OSError) and not self._is_loss(problem):
                raise Unavailable(f"results cannot be read: {problem}") from problem
            if not self._ledger.read(lambda tx: _is_kept(tx, channel_id, execution.no)):
                raise _Expired from problem
            self._note_lost(channel_id, execution, problem)
            return None
        with self._lock:
            self._lost.pop((channel_id, execution.no), None)
        return rows

    def _is_loss(self, problem: OSError) -> bool:
        return problem.errno in (errno.ENOENT, errno.EIO) and self._root.is_dir()

    def _note_lost(self, channel_id: int, execution: _Committed, problem: Exception) -> None:
        key = (channel_id, execution.no)
        with self._lock:
            is_news = key not in self._lost
            self._lost[key] = execution.result_rows
        if is_news:
            log.error(
                "%d results of execution %d of channel number %d are lost, brokers are told a gap: %s",
                execution.result_rows, execution.no, channel_id, problem,
            )  # fmt: skip

    def _rows(self, channel_id: int, execution: _Committed) -> ResultRows:
        key = (channel_id, execution.no)
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        rows = ResultRows([f if isinstance(f, bytes) else self._root / f for f in execution.files])
        with self._lock:
            self._open[key] = rows
            while len(self._open) > self._max_open:
                self._open.popitem(last=False)
        return rows


class _Expired(Exception):
    """Retention took an execution while it was about to be read."""


def row_id(channel_id: int, bounds: str, seq: int, ord: int) -> str:
    """The same for the same row of the same window, whatever attempt produced it."""
    return blake2b(f"{channel_id}|{bounds}|{seq}|{ord}".encode(), digest_size=12).hexdigest()


def _committed(tx: Tx, channel_id: int, after: Position) -> tuple[int, Gap | None, Sequence[_Committed]]:
    """The last committed execution, what retention took, and the next executions that have rows."""
    progress = retention.progress(tx, channel_id)
    gap = retention.gap(tx, channel_id, after, progress)
    sql = """SELECT e.no, e.bounds, e.result_rows FROM execution e
             WHERE e.channel_id = ? AND e.state = 'committed' AND e.result_rows > 0 AND e.no >= ? AND e.no > ?
             ORDER BY e.no LIMIT ?"""
    found = tx.rows(sql, (channel_id, after.execution, progress.expired, _EXECUTIONS_AT_ONCE))
    files: dict[int, list[str | bytes]] = {no: [] for no, *_ in found}
    if found:
        sql = """SELECT execution_no, path, content FROM result_file
                 WHERE channel_id = ? AND execution_no BETWEEN ? AND ? ORDER BY path"""
        for no, path, content in tx.rows(sql, (channel_id, found[0][0], found[-1][0])):
            if no in files:  # a file without rows belongs to an execution without results
                files[no].append(path if content is None else content)
    return progress.committed, gap, [_Committed(no, b, n, tuple(files[no])) for no, b, n in found]


def _is_kept(tx: Tx, channel_id: int, no: int) -> bool:
    sql = "SELECT 1 FROM execution WHERE channel_id = ? AND no = ? AND state = 'committed'"
    return bool(tx.rows(sql, (channel_id, no)))


def _widened(gap: Gap | None, cursor: Position, lost: _Committed) -> Gap:
    """``gap`` up to the end of a lost execution; nothing wanted was found in between."""
    seen = min(cursor.row, lost.result_rows) if cursor.execution == lost.no else 0
    known = gap or Gap(cursor, cursor, 0)
    count = None if known.count is None else known.count + lost.result_rows - seen
    return replace(known, through=Position.end_of(lost.no), count=count, reason="lost")


def _blocks(rows: ResultRows, start: int, end: int) -> list[tuple[int, int]]:
    """Runs of rows with about a million pairs each."""
    if start >= end:
        return []
    block = rows.pairs(start)[: end - start] // _BLOCK_PAIRS
    cuts = np.flatnonzero(np.diff(block)) + 1 + start
    edges = [start, *(int(c) for c in cuts), end]
    return list(pairwise(edges))


def _matches(rows: ResultRows, start: int, end: int, no: int, wanted: Wanted) -> Iterator[tuple[int, list[int]]]:
    """(row, wanted backend numbers) for the rows that have any, made as they are asked for: pages are short."""
    offsets, ids = rows.backends(start, end)
    mask = np.asarray(wanted(no, ids), dtype=bool)
    kept = ids[mask]
    places = np.concatenate(([0], np.cumsum(mask)))[offsets]
    hits = np.flatnonzero(np.diff(places))
    for i in hits:
        yield start + int(i), kept[places[i] : places[i + 1]].tolist()
