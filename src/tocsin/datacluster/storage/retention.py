"""Which of a channel's executions are kept, and what a reader who comes too late is told.

Results expire by whole executions, oldest first. Their rows in the ledger stay for a while without
files, so that a gap can be told with a count; beyond that, only that there is a gap. Executions
without results are forgotten once they are no longer recent.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.datacluster.storage.transaction import Tx, execute_in, row_or_none
from tocsin.errors import NotFound
from tocsin.model.catalog import Retention
from tocsin.model.position import Position

RECENT = 1000  # executions whose statistics are kept, results or not
COUNTED = 10_000  # expired executions with results that are kept for counting


@dataclass(frozen=True, slots=True)
class Gap:
    """Results in (after, through] are gone; ``count`` of the channel's rows, if that is still known."""

    after: Position
    through: Position
    count: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Executions up to ``expired`` have no results any more, up to ``forgotten`` no row either."""

    committed: int
    expired: int
    forgotten: int


def progress(tx: Tx, channel_id: int) -> Progress:
    sql = "SELECT committed, expired, forgotten FROM channel_progress WHERE channel_id = ?"
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
    if after.execution < known.forgotten:
        return Gap(after, through, None)
    return Gap(after, through, count) if count else None


def forget(tx: Tx, channel_id: int, retain: Retention, now: float) -> list[str]:
    """Take expired results out of the ledger; the names of their files."""
    known = progress(tx, channel_id)
    last = _last_expired(tx, channel_id, retain, now, known)
    if last > known.expired:
        sql = "UPDATE execution SET state = 'expired' WHERE channel_id = ? AND no <= ? AND state = 'committed'"
        tx.execute(sql, (channel_id, last))
        tx.execute("UPDATE channel_progress SET expired = ? WHERE channel_id = ?", (last, channel_id))
    _prune(tx, channel_id, known.committed)
    return _forget_files(tx, channel_id)


def _last_expired(tx: Tx, channel_id: int, retain: Retention, now: float, known: Progress) -> int:
    """The newest execution that the retention lets go."""
    sql = """SELECT no, ended_at, result_rows, size_bytes FROM execution
             WHERE channel_id = ? AND state = 'committed' AND result_rows > 0 ORDER BY no DESC"""
    rows = size = 0
    for no, ended_at, result_rows, size_bytes in tx.iterate(sql, (channel_id,)):
        rows, size = rows + result_rows, size + size_bytes
        too_old = retain.age_s is not None and ended_at < now - retain.age_s
        too_many = retain.records is not None and rows > retain.records
        too_big = retain.size_bytes is not None and size > retain.size_bytes
        if too_old or too_many or too_big:
            return int(no)
    return known.expired


def _forget_files(tx: Tx, channel_id: int) -> list[str]:
    """Take out the files whose execution is expired or gone."""
    sql = """SELECT f.path FROM result_file f
             LEFT JOIN execution e ON e.channel_id = f.channel_id AND e.no = f.execution_no AND e.state = 'committed'
             WHERE f.channel_id = ? AND e.no IS NULL"""
    names = [path for (path,) in tx.rows(sql, (channel_id,))]
    execute_in(tx, "DELETE FROM result_file WHERE path IN (*)", names)
    return names


def _prune(tx: Tx, channel_id: int, committed: int) -> None:
    """Delete the rows of executions that nobody needs: empty ones, and expired ones past counting."""
    sql = """DELETE FROM execution WHERE channel_id = ? AND no <= ? AND result_rows = 0
             AND state IN ('committed', 'abandoned', 'expired')"""
    tx.execute(sql, (channel_id, committed - RECENT))
    sql = """SELECT no FROM execution WHERE channel_id = ? AND state = 'expired' AND result_rows > 0
             ORDER BY no DESC LIMIT 1 OFFSET ?"""
    found = row_or_none(tx, sql, (channel_id, COUNTED))
    if found is not None:
        tx.execute(
            "DELETE FROM execution WHERE channel_id = ? AND no <= ? AND state = 'expired'", (channel_id, found[0])
        )
        tx.execute("UPDATE channel_progress SET forgotten = ? WHERE channel_id = ?", (found[0], channel_id))
