"""Notices to brokers, kept until delivered.

A notice only says that there is something to pull, so losing all but the newest of a channel loses
nothing: when more than ``max_waiting`` wait for one broker, each of its channels keeps its newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.datacluster.storage.transaction import Tx, execute_in, next_value, rows_in

MAX_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Notice:
    broker_id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class WaitingNotice:
    id: int
    broker_id: int
    channel_id: int
    execution_no: int
    body: bytes
    attempts: int


def enqueue(
    tx: Tx, channel_id: int, execution_no: int, notices: Sequence[Notice], now: float, max_waiting: int = MAX_WAITING
) -> None:
    """Add notices, due at once."""
    if not notices:
        return
    first = next_value(tx, "outbox", len(notices)) - len(notices) + 1
    tx.executemany(
        "INSERT INTO outbox (id, broker_id, channel_id, execution_no, body, due_at) VALUES (?, ?, ?, ?, ?, ?)",
        [(first + i, n.broker_id, channel_id, execution_no, n.body, now) for i, n in enumerate(notices)],
    )
    _coalesce(tx, sorted({n.broker_id for n in notices}), max_waiting)


def due(tx: Tx, now: float, limit: int = 1000, besides: Sequence[int] = ()) -> list[WaitingNotice]:
    """Notices to send now, oldest first, leaving out those for the brokers in ``besides``."""
    marks = ", ".join("?" * len(besides))
    sql = f"""SELECT id, broker_id, channel_id, execution_no, body, attempts FROM outbox
              WHERE due_at <= ? AND broker_id NOT IN ({marks}) ORDER BY id LIMIT ?"""  # noqa: S608
    return [WaitingNotice(*row) for row in tx.rows(sql, (now, *besides, limit))]


def delivered(tx: Tx, ids: Sequence[int]) -> None:
    execute_in(tx, "DELETE FROM outbox WHERE id IN (*)", ids)


def postpone(tx: Tx, ids: Sequence[int], due_at: float, problem: str) -> None:
    """Try them again at ``due_at``."""
    sql = "UPDATE outbox SET due_at = ?, problem = ?, attempts = attempts + 1 WHERE id IN (*)"
    execute_in(tx, sql, ids, (due_at, problem))


def waiting(tx: Tx) -> dict[int, int]:
    """How many notices wait, by broker."""
    return dict(tx.rows("SELECT broker_id, count(*) FROM outbox GROUP BY broker_id"))


def _coalesce(tx: Tx, broker_ids: Sequence[int], max_waiting: int) -> None:
    counted = rows_in(
        tx, "SELECT broker_id, count(id) FROM outbox WHERE broker_id IN (*) GROUP BY broker_id", broker_ids
    )
    for broker_id in (broker for broker, count in counted if count > max_waiting):
        tx.execute(
            """DELETE FROM outbox WHERE broker_id = ? AND id NOT IN
               (SELECT max(id) FROM outbox WHERE broker_id = ? GROUP BY channel_id)""",
            (broker_id, broker_id),
        )
