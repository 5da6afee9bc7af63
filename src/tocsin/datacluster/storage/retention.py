"""Which of a channel's executions are kept, and what a reader who comes too late is told.

Results expire by whole executions, oldest first. Their rows in the ledger stay for a while without
files, so that a gap can be told with a count; beyond that, only that there is a gap. Executions
without results are forgotten once they are no longer recent.

What is kept is summed up as it is committed and forgotten, so that ``due`` looks at the oldest
results only and ``forget`` at those that go, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.datacluster.storage.transaction import Row, Tx, execute_in, row_or_none, rows_in
from tocsin.errors import NotFound
from tocsin.model.catalog import Retention
from tocsin.model.position import Position

RECENT = 1000  # executions whose statistics are kept, results or not
COUNTED = 10_000  # expired executions with results that are kept for counting


@dataclass(frozen=True, slots=True)
class Gap:
    """Results in (after, through] are gone; ``count`` of the channel's rows, if that is still known.

    ``reason`` is ``retention``, ``lost`` where files that should be there are missing or damaged, or ``unheld`` where
    nobody held the backend subscription, so that they were never made.
    """

    after: Position
    through: Position
    count: int | None
    reason: str = "retention"


@dataclass(frozen=True, slots=True)
class Progress:
    """Executions up to ``expired`` have no results any more, up to ``forgotten`` no row either.

    Up to ``pruned`` there is none without results; the results kept are ``kept_rows`` and ``kept_bytes``.
    """

    committed: int
    expired: int
    forgotten: int
    pruned: int
    kept_rows: int
    kept_bytes: int


def progress(tx: Tx, channel_id: int) -> Progress:
    sql = """SELECT committed, expired, forgotten, pruned, kept_rows, kept_bytes
             FROM channel_progress WHERE channel_id = ?"""
    found = row_or_none(tx, sql, (channel_id,))
    if found is None:
        raise NotFound("channel", str(channel_id))
    return Progress(*found)


def gap(tx: Tx, channel_id: int, after: Position, known: Progress) -> Gap | None:
    """What lies between a position and the first results kept; ``None`` if nothing is missing."""
    if after >= Position.end_of(known.expired) or not known.expired:
        return None
    sql = """SELECT no, result_rows FROM execution
             WHERE channel_id = ? AND state = 'expired' AND result_rows > 0 AND no >= ? AND no <= ?"""
    rows = tx.rows(sql, (channel_id, after.execution, known.expired))
    count = sum(rows - min(rows, after.row) if no == after.execution else rows for no, rows in rows)
    through = Position.end_of(known.expired)
    if known.forgotten and after < Position.end_of(known.forgotten):
        return Gap(after, through, None)
    return Gap(after, through, count) if count else None


def due(tx: Tx, channel_id: int, retain: Retention, now: float) -> bool:
    """Whether ``forget`` has anything to do; only reads."""
    known = progress(tx, channel_id)
    if next(_expiring(tx, channel_id, retain, now, known), None) is not None:
        return True
    return known.committed - RECENT - known.pruned > RECENT or bool(_empty(tx, channel_id, known))


def forget(tx: Tx, channel_id: int, retain: Retention, now: float) -> list[str]:
    """Take expired results out of the ledger; the names of their files."""
    known = progress(tx, channel_id)
    names = _expire(tx, channel_id, list(_expiring(tx, channel_id, retain, now, known)), known)
    return names + _prune(tx, channel_id, known)


def _expiring(tx: Tx, channel_id: int, retain: Retention, now: float, known: Progress) -> Iterator[Row]:
    """The (no, rows, bytes) of the executions that the retention lets go, oldest first."""
    sql = """SELECT no, result_rows, size_bytes, ended_at FROM execution
             WHERE channel_id = ? AND no > ? AND state = 'committed' AND result_rows > 0 ORDER BY no"""
    rows, size = known.kept_rows, known.kept_bytes
    for no, result_rows, size_bytes, ended_at in tx.iterate(sql, (channel_id, known.expired)):
        too_old = retain.age_s is not None and ended_at < now - retain.age_s
        too_many = retain.records is not None and rows > retain.records
        too_big = retain.size_bytes is not None and size > retain.size_bytes
        if not (too_old or too_many or too_big):
            return
        yield no, result_rows, size_bytes
        rows, size = rows - result_rows, size - size_bytes


def _expire(tx: Tx, channel_id: int, gone: list[Row], known: Progress) -> list[str]:
    if not gone:
        return []
    last = gone[-1][0]
    sql = "UPDATE execution SET state = 'expired' WHERE channel_id = ? AND no > ? AND no <= ? AND state = 'committed'"
    tx.execute(sql, (channel_id, known.expired, last))
    sql = """UPDATE channel_progress SET expired = ?, kept_rows = kept_rows - ?, kept_bytes = kept_bytes - ?
             WHERE channel_id = ?"""
    tx.execute(sql, (last, sum(rows for _, rows, _ in gone), sum(size for *_, size in gone), channel_id))
    _stop_counting(tx, channel_id, last)
    sql = "DELETE FROM result_file WHERE channel_id = ? AND execution_no <= ? RETURNING path"
    return [path for (path,) in tx.rows(sql, (channel_id, last))]


def _stop_counting(tx: Tx, channel_id: int, expired: int) -> None:
    """Delete the rows of expired executions past counting."""
    sql = """SELECT no FROM execution WHERE channel_id = ? AND no <= ? AND state = 'expired' AND result_rows > 0
             ORDER BY no DESC LIMIT 1 OFFSET ?"""
    found = row_or_none(tx, sql, (channel_id, expired, COUNTED))
    if found is not None:
        sql = "DELETE FROM execution WHERE channel_id = ? AND no <= ? AND state = 'expired'"
        tx.execute(sql, (channel_id, found[0]))
        tx.execute("UPDATE channel_progress SET forgotten = ? WHERE channel_id = ?", (found[0], channel_id))


def _empty(tx: Tx, channel_id: int, known: Progress) -> list[int]:
    """The executions without results that are no longer recent."""
    sql = """SELECT no FROM execution WHERE channel_id = ? AND no > ? AND no <= ? AND result_rows = 0
             AND state IN ('committed', 'abandoned', 'expired')"""
    return [no for (no,) in tx.rows(sql, (channel_id, known.pruned, known.committed - RECENT))]


def _prune(tx: Tx, channel_id: int, known: Progress) -> list[str]:
    """Delete the rows of executions without results; the names of files that they left nevertheless."""
    through = known.committed - RECENT
    if through <= known.pruned:
        return []
    empty = _empty(tx, channel_id, known)
    sql = "SELECT path FROM result_file WHERE channel_id = ? AND execution_no IN (*)"
    names = [path for (path,) in rows_in(tx, sql, empty, (channel_id,))]
    execute_in(tx, "DELETE FROM result_file WHERE path IN (*)", names)
    execute_in(tx, "DELETE FROM execution WHERE channel_id = ? AND no IN (*)", empty, (channel_id,))
    tx.execute("UPDATE channel_progress SET pruned = ? WHERE channel_id = ?", (through, channel_id))
    return names
