"""Subscriptions, and the backend subscriptions behind them.

Subscriptions of one channel with equal arguments share one *backend subscription*, numbered densely
from 1 per channel. When its last holder leaves it becomes inactive but keeps its number, and gets it
back with the next holder, so its stream goes on, until ``purge`` forgets it: then the same arguments get a
new number. A number never stands for other arguments. ``version`` is a number of the whole ledger that
grows with every change of the active set: who knows version ``v`` asks for what changed since.
Executions that ran while nobody held it made nothing for it; ``holes`` tells whoever reads over them.

A subscription counts from the first execution that starts after it was written.

``making`` is the caller's own number of its request, growing with each: a subscription has that of the latest one
that asked for it, and a removal that names one passes over what was asked for later. So it may arrive late.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tocsin.datacluster.storage.transaction import Row, Tx, execute_in, next_value, row_or_none, rows_in
from tocsin.errors import AlreadyExists, NotFound


@dataclass(frozen=True, slots=True)
class Wanted:
    """A subscription asked for; ``params_key`` is the canonical JSON array of its arguments.

    With an ``id`` of the caller's, asking again gives the same subscription.
    """

    params_key: str
    broker_id: int
    owner: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """``backend_changed``: this call made its backend subscription, or made it active again.

    ``is_new``: the subscription was not there before, and stands once among the answers.
    """

    id: str
    backend_no: int
    since_execution: int
    backend_changed: bool
    is_new: bool = True
    making: int = 0


@dataclass(frozen=True, slots=True)
class Removed:
    """``backend_gone``: nobody holds it any more; ``is_detached``: nobody on that broker does."""

    id: str
    channel_id: int
    backend_no: int
    broker_id: int
    backend_gone: bool
    is_detached: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """``live_from``: the new broker's live results begin with this execution."""

    id: str
    channel_id: int
    backend_no: int
    from_broker_id: int
    broker_id: int
    since_execution: int
    live_from: int
    making: int


@dataclass(frozen=True, slots=True)
class Viewer:
    """Sees what it owns, and what stands on its brokers."""

    owner: str
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    id: str
    channel_id: int
    backend_no: int
    broker_id: int
    owner: str
    since_execution: int
    created_at: float
    params_key: str
    making: int


@dataclass(frozen=True, slots=True)
class BackendRow:
    no: int
    params_key: str
    active: bool
    version: int


@dataclass(frozen=True, slots=True)
class Counts:
    """``backends`` are the active ones: the distinct sets of arguments."""

    subscriptions: int
    backends: int


@dataclass(frozen=True, slots=True)
class _Standing:
    """``asked`` is (channel, backend number, broker, owner)."""

    asked: tuple[int, int, int, str]
    since_execution: int
    making: int


@dataclass(slots=True)
class _Backend:
    no: int
    active: bool
    is_new: bool
    added: int = 0

    @property
    def is_changed(self) -> bool:
        return self.added > 0 and not self.active


def add_subscriptions(tx: Tx, channel_id: int, wanted: Sequence[Wanted], now: float, making: int = 0) -> list[Added]:
    """Add them all; an id that exists is returned as it is where all is the same, owner and broker too.

    Only its ``making`` becomes this one, if that is later.
    """
    started, last_no = _progress(tx, channel_id)
    known = _existing(tx, [w.id for w in wanted if w.id is not None])
    backends = _backends(tx, channel_id, {w.params_key for w in wanted}, last_no)
    ids = _ids(wanted, backends, now)
    fresh: list[Row] = []
    are_new: list[bool] = []
    for id, want in zip(ids, wanted, strict=True):
        backend = backends[want.params_key]
        asked = (channel_id, backend.no, want.broker_id, want.owner)
        are_new.append(id not in known)
        if id not in known:
            known[id] = _Standing(asked, started + 1, making)
            backend.added += 1
            fresh.append((id, channel_id, backend.no, want.broker_id, want.owner, started + 1, now, making))
        elif known[id].asked != asked:
            raise AlreadyExists("subscription", id, "choose another id")
    _store(tx, channel_id, backends, fresh, started)
    older = [id for id, stood in known.items() if stood.making < making]
    execute_in(tx, "UPDATE subscription SET making = ? WHERE id IN (*)", older, (making,))
    return [
        Added(id, stood.asked[1], stood.since_execution, backends[want.params_key].is_changed, is_new,
              max(stood.making, making))
        for id, want, is_new, stood in zip(ids, wanted, are_new, (known[id] for id in ids), strict=True)
    ]  # fmt: skip


def remove_subscriptions(
    tx: Tx, ids: Sequence[str], channel_id: int | None = None, making: int | None = None
) -> list[Removed]:
    """Remove those that exist, of one channel if it is given, up to ``making``; any other id is passed over."""
    sql = """SELECT id, channel_id, backend_no, broker_id FROM subscription
             WHERE (? IS NULL OR making <= ?) AND id IN (*)"""
    rows = rows_in(tx, sql, list(dict.fromkeys(ids)), (making, making))
    found = [row for row in rows if channel_id in (None, row[1])]
    execute_in(tx, "DELETE FROM subscription WHERE id IN (*)", [row[0] for row in found])
    gone = _release(tx, Counter((row[1], row[2]) for row in found))
    detached = {place for place in {row[1:] for row in found} if not is_held(tx, place)}
    return [Removed(row[0], row[1], row[2], row[3], row[1:3] in gone, row[1:] in detached) for row in found]


def move_subscriptions(tx: Tx, ids: Sequence[str], broker_id: int) -> list[Moved]:
    """Put them on another broker; an unknown id is passed over."""
    sql = """SELECT s.id, s.channel_id, s.backend_no, s.broker_id, s.since_execution, p.started + 1, s.making
             FROM subscription s JOIN channel_progress p ON p.channel_id = s.channel_id WHERE s.id IN (*)"""
    found = rows_in(tx, sql, list(dict.fromkeys(ids)))
    execute_in(tx, "UPDATE subscription SET broker_id = ? WHERE id IN (*)", [row[0] for row in found], (broker_id,))
    return [Moved(id, ch, no, old, broker_id, since, live, made) for id, ch, no, old, since, live, made in found]


def list_subscriptions(
    tx: Tx,
    channel_id: int | None = None,
    broker_id: int | None = None,
    limit: int = 1000,
    after: str = "",
    seen_by: Viewer | None = None,
) -> list[SubscriptionRow]:
    """A page in the order of ids; the last id of one page is the next one's ``after``."""
    sql = """SELECT s.id, s.channel_id, s.backend_no, s.broker_id, s.owner, s.since_execution, s.created_at,
                    b.params_key, s.making
             FROM subscription s
             JOIN backend_subscription b ON b.channel_id = s.channel_id AND b.no = s.backend_no
             WHERE s.id > ? AND (? IS NULL OR s.channel_id = ?) AND (? IS NULL OR s.broker_id = ?)
             AND (? IS NULL OR s.owner = ? OR ? LIKE '%,' || s.broker_id || ',%')
             ORDER BY s.id LIMIT ?"""
    owner = seen_by.owner if seen_by else None
    brokers = f",{','.join(map(str, seen_by.brokers))}," if seen_by else ""
    params = (after, channel_id, channel_id, broker_id, broker_id, owner, owner, brokers, limit)
    return [SubscriptionRow(*row) for row in tx.rows(sql, params)]


def backends_since(tx: Tx, channel_id: int, version: int = 0) -> Iterator[BackendRow]:
    """What changed after ``version``, oldest first; from 0, every one that was not purged."""
    sql = """SELECT no, params_key, active, version FROM backend_subscription
             WHERE channel_id = ? AND version > ? ORDER BY version, no"""
    for no, params_key, active, changed in tx.iterate(sql, (channel_id, version)):
        yield BackendRow(no, params_key, bool(active), changed)


def purge(tx: Tx, channel_id: int, version: int) -> int:
    """Forget the parameter sets that nobody holds since ``version`` or before; how many.

    Only those that no base made before holds: their numbers are never used again, so nothing else asks for them.
    """
    sql = "DELETE FROM backend_subscription WHERE channel_id = ? AND active = 0 AND version <= ?"
    return tx.execute(sql, (channel_id, version))


def current_version(tx: Tx) -> int:
    """The version of the last change to any channel's active set."""
    found = row_or_none(tx, "SELECT value FROM counter WHERE name = 'backend_version'")
    return int(found[0]) if found else 0


def counts(tx: Tx, channel_id: int) -> Counts:
    sql = "SELECT subscriptions, backends FROM channel_progress WHERE channel_id = ?"
    found = row_or_none(tx, sql, (channel_id,))
    return Counts(*found) if found else Counts(0, 0)


def attachments(tx: Tx, channel_id: int) -> Iterator[tuple[int, int, int]]:
    """(backend number, broker, first execution that counts) for each pair that somebody holds."""
    sql = """SELECT backend_no, broker_id, min(since_execution) FROM subscription
             WHERE channel_id = ? GROUP BY backend_no, broker_id ORDER BY backend_no, broker_id"""
    yield from tx.iterate(sql, (channel_id,))


def held_by_broker(tx: Tx) -> dict[int, int]:
    """How many subscriptions each broker has."""
    return dict(tx.rows("SELECT broker_id, count(*) FROM subscription GROUP BY broker_id"))


def owners(tx: Tx, ids: Sequence[str]) -> list[tuple[str, str, int]]:
    """(id, owner, broker) of those that exist."""
    return rows_in(tx, "SELECT id, owner, broker_id FROM subscription WHERE id IN (*)", list(ids))


def _progress(tx: Tx, channel_id: int) -> tuple[int, int]:
    sql = "SELECT started, last_backend FROM channel_progress WHERE channel_id = ?"
    found = row_or_none(tx, sql, (channel_id,))
    if found is None:
        raise NotFound("channel", str(channel_id))
    return found[0], found[1]


def _existing(tx: Tx, ids: Sequence[str]) -> dict[str, _Standing]:
    sql = """SELECT id, channel_id, backend_no, broker_id, owner, since_execution, making
             FROM subscription WHERE id IN (*)"""
    return {row[0]: _Standing(row[1:5], row[5], row[6]) for row in rows_in(tx, sql, ids)}


def _backends(tx: Tx, channel_id: int, keys: Iterable[str], last_no: int) -> dict[str, _Backend]:
    """The backend subscription of each key; new ones are numbered in the order of their keys."""
    wanted = sorted(keys)
    sql = "SELECT params_key, no, active FROM backend_subscription WHERE channel_id = ? AND params_key IN (*)"
    found = {
        key: _Backend(no, bool(active), is_new=False) for key, no, active in rows_in(tx, sql, wanted, (channel_id,))
    }
    missing = (key for key in wanted if key not in found)
    return found | {key: _Backend(no, False, is_new=True) for no, key in enumerate(missing, last_no + 1)}


def _ids(wanted: Sequence[Wanted], backends: dict[str, _Backend], now: float) -> list[str]:
    """The caller's id or a new one for each. New ones cannot be guessed and begin with the time.

    They ascend with the backend's number, so that both indexes of a bulk grow at their ends.
    """
    ids = [want.id or "" for want in wanted]
    unnamed = [i for i, id in enumerate(ids) if not id]
    unnamed.sort(key=lambda i: backends[wanted[i].params_key].no)
    time, chance = f"{int(now * 1000):012x}", os.urandom(10 * len(unnamed)).hex()
    made = sorted(time + chance[at : at + 20] for at in range(0, len(chance), 20))
    for i, id in zip(unnamed, made, strict=True):
        ids[i] = id
    return ids


def _store(tx: Tx, channel_id: int, backends: dict[str, _Backend], fresh: list[Row], started: int) -> None:
    if not fresh:
        return
    touched = [(key, b) for key, b in backends.items() if b.added]
    changed = sum(b.is_changed for _, b in touched)
    version = next_value(tx, "backend_version") if changed else 0
    tx.executemany(
        """INSERT INTO backend_subscription (channel_id, no, params_key, active, holders, version)
           VALUES (?, ?, ?, 1, ?, ?)""",
        [(channel_id, b.no, key, b.added, version) for key, b in touched if b.is_new],
    )
    tx.executemany(
        """UPDATE backend_subscription SET holders = holders + ?, active = 1,
           held_since = CASE WHEN active = 0 AND left_after < ? THEN ? ELSE held_since END,
           version = CASE WHEN active = 0 THEN ? ELSE version END WHERE channel_id = ? AND no = ?""",
        [(b.added, started, started + 1, version, channel_id, b.no) for _, b in touched if not b.is_new],
    )
    tx.executemany(
        """INSERT INTO subscription
               (id, channel_id, backend_no, broker_id, owner, since_execution, created_at, making)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
        sorted(fresh),
    )
    last = max((b.no for _, b in touched if b.is_new), default=0)
    tx.execute(
        """UPDATE channel_progress SET subscriptions = subscriptions + ?, backends = backends + ?,
           last_backend = CASE WHEN last_backend < ? THEN ? ELSE last_backend END WHERE channel_id = ?""",
        (len(fresh), changed, last, last, channel_id),
    )


def _release(tx: Tx, leaving: Counter[tuple[int, int]]) -> set[tuple[int, int]]:
    """Take the holders off; the backend subscriptions that nobody holds now."""
    if not leaving:
        return set()
    tx.executemany(
        "UPDATE backend_subscription SET holders = holders - ? WHERE channel_id = ? AND no = ?",
        [(count, *backend) for backend, count in leaving.items()],
    )
    gone = {backend for backend in leaving if _holders(tx, backend) == 0}
    version = next_value(tx, "backend_version") if gone else 0
    ended = {channel_id: _ended(tx, channel_id) for channel_id, _ in gone}
    tx.executemany(
        """UPDATE backend_subscription SET active = 0, version = ?, left_after = ?,
           broken_through = CASE WHEN held_since > 0 THEN held_since - 1 ELSE broken_through END
           WHERE channel_id = ? AND no = ?""",
        [(version, ended[backend[0]], *backend) for backend in gone],
    )
    for channel_id in {channel for channel, _ in leaving}:
        tx.execute(
            """UPDATE channel_progress SET subscriptions = subscriptions - ?, backends = backends - ?
               WHERE channel_id = ?""",
            (
                sum(count for (channel, _), count in leaving.items() if channel == channel_id),
                sum(channel == channel_id for channel, _ in gone),
                channel_id,
            ),
        )
    return gone


def _ended(tx: Tx, channel_id: int) -> int:
    """The last execution that is over. One that runs may begin again, without what is released now."""
    sql = """SELECT p.started - (SELECT count(*) FROM execution e
                                 WHERE e.channel_id = p.channel_id AND e.no = p.started AND e.state = 'started')
             FROM channel_progress p WHERE p.channel_id = ?"""
    return int(tx.rows(sql, (channel_id,))[0][0])


def _holders(tx: Tx, backend: tuple[int, int]) -> int:
    sql = "SELECT holders FROM backend_subscription WHERE channel_id = ? AND no = ?"
    return int(tx.rows(sql, backend)[0][0])


def is_held(tx: Tx, place: Row) -> bool:
    """Whether a (channel, backend number, broker) has a subscription."""
    sql = "SELECT 1 FROM subscription WHERE channel_id = ? AND backend_no = ? AND broker_id = ? LIMIT 1"
    return bool(tx.rows(sql, place))
