"""Executions and windows: what was evaluated, and the one transaction that makes it visible.

::

    started ──commit──► committed ──files expire──► expired
       └──abandon──► abandoned

A channel has at most one started execution. Its bounds are written before it runs and stay as they
are through every further attempt, so a crash repeats the same window. ``commit`` writes the result
files, the advanced windows and the notices together, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import msgspec

from tocsin.datacluster.storage import outbox
from tocsin.datacluster.storage.outbox import Notice
from tocsin.datacluster.storage.transaction import Row, Tx, row_or_none
from tocsin.errors import NotFound

Bounds = Mapping[int, tuple[int, int]]


class StaleExecution(RuntimeError):
    """What was to be committed is not the execution that runs."""


@dataclass(frozen=True, slots=True)
class Execution:
    """``bounds``: dataset id to (after, through], the sequence numbers evaluated."""

    channel_id: int
    no: int
    bounds: Bounds
    window_time: float
    attempt: int


@dataclass(frozen=True, slots=True)
class ResultFile:
    """Of ``path`` only the channel's directory and the file's name are kept.

    A small one need not be a file: with ``content`` it lives in the ledger, which saves its syncs.
    """

    path: str
    rows: int
    pairs: int
    size_bytes: int
    content: bytes | None = None

    @property
    def name(self) -> str:
        """The path relative to the directory of results."""
        return "/".join(PurePath(self.path).parts[-2:])


@dataclass(frozen=True, slots=True)
class ExecutionStats:
    """``considered`` new records were in the window, ``matched`` (record, backend subscription) pairs found."""

    considered: int = 0
    matched: int = 0
    rows: int = 0
    duration_s: float = 0.0
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    execution: Execution
    state: str
    ended_at: float | None
    stats: ExecutionStats
    problem: str | None
    failed_sql: str | None
    failed_at: float | None


def open_window(tx: Tx, channel_id: int, dataset_id: int, at: int) -> None:
    """Let a channel see what comes to a dataset after ``at``."""
    tx.execute(
        "INSERT INTO channel_window (channel_id, dataset_id, through) VALUES (?, ?, ?)", (channel_id, dataset_id, at)
    )


def close_window(tx: Tx, channel_id: int, dataset_id: int) -> None:
    """The dataset no longer drives the channel."""
    tx.execute("DELETE FROM channel_window WHERE channel_id = ? AND dataset_id = ?", (channel_id, dataset_id))


def windows(tx: Tx, channel_id: int) -> dict[int, int]:
    """How far each driving dataset has been evaluated."""
    sql = "SELECT dataset_id, through FROM channel_window WHERE channel_id = ?"
    return dict(tx.rows(sql, (channel_id,)))


def keep_from(tx: Tx, dataset_id: int) -> int | None:
    """The oldest window over a dataset; ``None`` where nothing reads its news."""
    sql = "SELECT min(through) FROM channel_window WHERE dataset_id = ?"
    found = row_or_none(tx, sql, (dataset_id,))
    return found[0] if found else None


def begin(tx: Tx, channel_id: int, bounds: Bounds, now: float) -> Execution:
    """Start an execution; one that was started and not finished is taken up again, bounds unchanged."""
    pending = _started(tx, channel_id)
    if pending is not None:
        return _again(tx, pending)
    _check_bounds(channel_id, bounds, windows(tx, channel_id))
    no = _next_no(tx, channel_id)
    tx.execute(
        """INSERT INTO execution (channel_id, no, state, attempt, bounds, window_time)
           VALUES (?, ?, 'started', 1, ?, ?)""",
        (channel_id, no, _bounds_text(bounds), now),
    )
    return Execution(channel_id, no, dict(bounds), now, 1)


def pending(tx: Tx, channel_id: int) -> Execution | None:
    """The execution that was started and not finished."""
    return _started(tx, channel_id)


def abandon(tx: Tx, channel_id: int, now: float) -> None:
    """Give up the started execution, if any; its window will be evaluated anew under another number."""
    sql = "UPDATE execution SET state = 'abandoned', ended_at = ? WHERE channel_id = ? AND state = 'started'"
    tx.execute(sql, (now, channel_id))


def commit(
    tx: Tx,
    execution: Execution,
    files: Sequence[ResultFile],
    stats: ExecutionStats,
    notices: Sequence[Notice],
    now: float,
    max_waiting: int = outbox.MAX_WAITING,
) -> None:
    """Make an execution visible; ``StaleExecution`` if another attempt or execution took its place."""
    channel_id, no = execution.channel_id, execution.no
    current = _started(tx, channel_id)
    if current is None or (current.no, current.attempt) != (no, execution.attempt):
        raise StaleExecution(
            f"channel {channel_id}: execution {no}, attempt {execution.attempt} is not the started one"
        )
    size_bytes = sum(f.size_bytes for f in files)
    tx.execute(
        """UPDATE execution SET state = 'committed', ended_at = ?, considered = ?, matched = ?, result_rows = ?,
           duration_s = ?, strategy = ?, size_bytes = ?, problem = NULL, failed_sql = NULL
           WHERE channel_id = ? AND no = ?""",
        (
            now,
            stats.considered,
            stats.matched,
            stats.rows,
            stats.duration_s,
            stats.strategy,
            size_bytes,
            channel_id,
            no,
        ),
    )
    tx.executemany(
        """INSERT INTO result_file (path, channel_id, execution_no, result_rows, pairs, size_bytes, content)
           VALUES (?, ?, ?, ?, ?, ?, ?)""",
        [(f.name, channel_id, no, f.rows, f.pairs, f.size_bytes, f.content) for f in files],
    )
    _advance(tx, execution, stats.rows, size_bytes if stats.rows else 0)
    outbox.enqueue(tx, channel_id, no, notices, now, max_waiting)


def record_failure(tx: Tx, execution: Execution, problem: str, sql: str, now: float) -> None:
    """Keep why an attempt failed; the execution stays started and will be tried again."""
    tx.execute(
        """UPDATE execution SET problem = ?, failed_sql = ?, failed_at = ?
           WHERE channel_id = ? AND no = ? AND state = 'started'""",
        (problem, sql, now, execution.channel_id, execution.no),
    )


def recent(tx: Tx, channel_id: int, limit: int = 10) -> list[ExecutionRow]:
    """The last executions, newest first."""
    sql = """SELECT channel_id, no, bounds, window_time, attempt, state, ended_at, considered, matched, result_rows,
             duration_s, strategy, problem, failed_sql, failed_at
             FROM execution WHERE channel_id = ? ORDER BY no DESC LIMIT ?"""
    return [_execution_row(row) for row in tx.rows(sql, (channel_id, limit))]


def committed_head(tx: Tx, channel_id: int) -> int:
    """The number of the last committed execution, 0 before the first."""
    found = row_or_none(tx, "SELECT committed FROM channel_progress WHERE channel_id = ?", (channel_id,))
    if found is None:
        raise NotFound("channel", str(channel_id))
    return int(found[0])


def started_head(tx: Tx, channel_id: int) -> int:
    """The number of the last execution that was begun, 0 before the first."""
    found = row_or_none(tx, "SELECT started FROM channel_progress WHERE channel_id = ?", (channel_id,))
    if found is None:
        raise NotFound("channel", str(channel_id))
    return int(found[0])


def _started(tx: Tx, channel_id: int) -> Execution | None:
    sql = """SELECT e.channel_id, e.no, e.bounds, e.window_time, e.attempt
             FROM channel_progress p JOIN execution e ON e.channel_id = p.channel_id AND e.no = p.started
             WHERE p.channel_id = ? AND e.state = 'started'"""
    found = row_or_none(tx, sql, (channel_id,))
    return _execution(found) if found else None


def _again(tx: Tx, pending: Execution) -> Execution:
    sql = "UPDATE execution SET attempt = attempt + 1 WHERE channel_id = ? AND no = ?"
    tx.execute(sql, (pending.channel_id, pending.no))
    return Execution(pending.channel_id, pending.no, pending.bounds, pending.window_time, pending.attempt + 1)


def _check_bounds(channel_id: int, bounds: Bounds, stored: Mapping[int, int]) -> None:
    for dataset_id, (after, through) in bounds.items():
        if stored.get(dataset_id) != after or through < after:
            raise ValueError(
                f"channel {channel_id}: the window of dataset {dataset_id} is stored through "
                f"{stored.get(dataset_id)}, an execution cannot cover ({after}, {through}]"
            )


def _next_no(tx: Tx, channel_id: int) -> int:
    sql = "UPDATE channel_progress SET started = started + 1 WHERE channel_id = ? RETURNING started"
    found = row_or_none(tx, sql, (channel_id,))
    if found is None:
        raise NotFound("channel", str(channel_id))
    return int(found[0])


def _advance(tx: Tx, execution: Execution, rows: int, size_bytes: int) -> None:
    channel_id = execution.channel_id
    sql = """UPDATE channel_progress SET committed = ?, kept_rows = kept_rows + ?, kept_bytes = kept_bytes + ?
             WHERE channel_id = ?"""
    tx.execute(sql, (execution.no, rows, size_bytes, channel_id))
    for dataset_id, (after, through) in execution.bounds.items():
        sql = "UPDATE channel_window SET through = ? WHERE channel_id = ? AND dataset_id = ? AND through = ?"
        if tx.execute(sql, (through, channel_id, dataset_id, after)) != 1:
            raise StaleExecution(f"channel {channel_id}: the window of dataset {dataset_id} is not at {after}")


def _bounds_text(bounds: Bounds) -> str:
    return msgspec.json.encode({str(dataset): pair for dataset, pair in sorted(bounds.items())}).decode()


def _execution(row: Row) -> Execution:
    bounds = msgspec.json.decode(row[2], type=dict[int, tuple[int, int]])
    return Execution(row[0], row[1], bounds, row[3], row[4])


def _execution_row(row: Row) -> ExecutionRow:
    stats = ExecutionStats(*row[7:12])
    return ExecutionRow(_execution(row), row[5], row[6], stats, *row[12:])
