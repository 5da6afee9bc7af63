"""What statements declared, as rows: datasets, channels, brokers, feeds.

Names are found without regard to case. An id is taken from a counter and never used again, so files
named after it cannot be mistaken. Dropping a channel removes all that belongs to it in the ledger;
its files are left to the sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.datacluster.storage.transaction import Row, Tx, next_value, row_or_none
from tocsin.errors import AlreadyExists, InUse, NotFound
from tocsin.model.catalog import BrokerSpec, ChannelSpec, DatasetSpec, FeedSpec
from tocsin.units import counted

Spec = DatasetSpec | ChannelSpec | BrokerSpec | FeedSpec

RUNNING, PAUSED = "running", "paused"
_NAMED_USERS = 3


@dataclass(frozen=True, slots=True)
class DatasetRow:
    id: int
    spec: DatasetSpec


@dataclass(frozen=True, slots=True)
class ChannelRow:
    id: int
    spec: ChannelSpec
    state: str
    created_at: float


@dataclass(frozen=True, slots=True)
class BrokerRow:
    id: int
    spec: BrokerSpec


@dataclass(frozen=True, slots=True)
class FeedRow:
    id: int
    spec: FeedSpec
    state: str


def create_dataset(tx: Tx, spec: DatasetSpec, now: float = 0.0) -> DatasetRow:
    return DatasetRow(_insert(tx, "dataset", spec, now), spec)


def replace_dataset(tx: Tx, spec: DatasetSpec) -> DatasetRow:
    """Store a changed ``spec`` under the same id."""
    return DatasetRow(_update(tx, "dataset", spec), spec)


def drop_dataset(tx: Tx, name: str) -> DatasetRow:
    row = get_dataset(tx, name)
    sql = """SELECT e.spec FROM channel_window w JOIN entry e ON e.id = w.channel_id
             WHERE w.dataset_id = ? ORDER BY e.name_key"""
    users = [msgspec.json.decode(text, type=ChannelSpec).name for (text,) in tx.rows(sql, (row.id,))]
    if users:
        raise InUse("dataset", row.spec.name, users)
    tx.execute("DELETE FROM dataset_progress WHERE dataset_id = ?", (row.id,))
    tx.execute("DELETE FROM entry WHERE id = ?", (row.id,))
    return row


def get_dataset(tx: Tx, name: str) -> DatasetRow:
    return _dataset(_get(tx, "dataset", name))


def list_datasets(tx: Tx) -> list[DatasetRow]:
    return [_dataset(row) for row in _list(tx, "dataset")]


def create_channel(tx: Tx, spec: ChannelSpec, now: float) -> ChannelRow:
    id = _insert(tx, "channel", spec, now)
    tx.execute("INSERT INTO channel_progress (channel_id) VALUES (?)", (id,))
    return ChannelRow(id, spec, RUNNING, now)


def replace_channel(tx: Tx, spec: ChannelSpec) -> ChannelRow:
    """Store a changed ``spec``; id, state, subscriptions and positions stay."""
    _update(tx, "channel", spec)
    return get_channel(tx, spec.name)


def set_channel_state(tx: Tx, name: str, state: str) -> ChannelRow:
    """``running`` or ``paused``."""
    row = get_channel(tx, name)
    tx.execute("UPDATE entry SET state = ? WHERE id = ?", (state, row.id))
    return ChannelRow(row.id, row.spec, state, row.created_at)


def drop_channel(tx: Tx, name: str, *, cascade: bool = False) -> ChannelRow:
    """Refused while somebody is subscribed to it, unless the subscriptions are to go with it."""
    row = get_channel(tx, name)
    if not cascade:
        refuse_subscribed(tx, row)
    for sql in _BELONGS_TO_CHANNEL:
        tx.execute(sql, (row.id,))
    tx.execute("DELETE FROM entry WHERE id = ?", (row.id,))
    return row


def refuse_subscribed(tx: Tx, row: ChannelRow) -> None:
    """InUse, with how many subscribed and the first of them, if anybody did."""
    count = tx.rows("SELECT count(*) FROM subscription WHERE channel_id = ?", (row.id,))[0][0]
    if count:
        sql = "SELECT id FROM subscription WHERE channel_id = ? ORDER BY id LIMIT ?"
        first = ", ".join(id for (id,) in tx.rows(sql, (row.id, _NAMED_USERS)))
        users = f"{counted(count, 'subscription')} ({first}{', …' if count > _NAMED_USERS else ''})"
        raise InUse("channel", row.spec.name, [users], instead=" or say CASCADE")


def get_channel(tx: Tx, name: str) -> ChannelRow:
    return _channel(_get(tx, "channel", name))


def list_channels(tx: Tx) -> list[ChannelRow]:
    return [_channel(row) for row in _list(tx, "channel")]


def create_broker(tx: Tx, spec: BrokerSpec, now: float = 0.0) -> BrokerRow:
    return BrokerRow(_insert(tx, "broker", spec, now), spec)


def replace_broker(tx: Tx, spec: BrokerSpec) -> BrokerRow:
    """Store another address; id, subscriptions and acknowledgements stay."""
    return BrokerRow(_update(tx, "broker", spec), spec)


def drop_broker(tx: Tx, name: str) -> BrokerRow:
    """Refused while a subscription is on it."""
    row = get_broker(tx, name)
    count = tx.rows("SELECT count(*) FROM subscription WHERE broker_id = ?", (row.id,))[0][0]
    if count:
        raise InUse("broker", row.spec.name, [counted(count, "subscription")])
    tx.execute("DELETE FROM outbox WHERE broker_id = ?", (row.id,))
    tx.execute("DELETE FROM acknowledgement WHERE broker_id = ?", (row.id,))
    tx.execute("DELETE FROM entry WHERE id = ?", (row.id,))
    return row


def get_broker(tx: Tx, name: str) -> BrokerRow:
    return _broker(_get(tx, "broker", name))


def list_brokers(tx: Tx) -> list[BrokerRow]:
    return [_broker(row) for row in _list(tx, "broker")]


def create_feed(tx: Tx, spec: FeedSpec, now: float = 0.0) -> FeedRow:
    return FeedRow(_insert(tx, "feed", spec, now), spec, RUNNING)


def set_feed_state(tx: Tx, name: str, state: str) -> FeedRow:
    row = get_feed(tx, name)
    tx.execute("UPDATE entry SET state = ? WHERE id = ?", (state, row.id))
    return FeedRow(row.id, row.spec, state)


def drop_feed(tx: Tx, name: str) -> FeedRow:
    row = get_feed(tx, name)
    tx.execute("DELETE FROM entry WHERE id = ?", (row.id,))
    return row


def get_feed(tx: Tx, name: str) -> FeedRow:
    return _feed(_get(tx, "feed", name))


def list_feeds(tx: Tx) -> list[FeedRow]:
    return [_feed(row) for row in _list(tx, "feed")]


_BELONGS_TO_CHANNEL = (
    "DELETE FROM subscription WHERE channel_id = ?",
    "DELETE FROM backend_subscription WHERE channel_id = ?",
    "DELETE FROM channel_window WHERE channel_id = ?",
    "DELETE FROM result_file WHERE channel_id = ?",
    "DELETE FROM execution WHERE channel_id = ?",
    "DELETE FROM outbox WHERE channel_id = ?",
    "DELETE FROM acknowledgement WHERE channel_id = ?",
    "DELETE FROM channel_progress WHERE channel_id = ?",
)


def _insert(tx: Tx, kind: str, spec: Spec, now: float) -> int:
    key = spec.name.lower()
    if row_or_none(tx, "SELECT 1 FROM entry WHERE kind = ? AND name_key = ?", (kind, key)):
        raise AlreadyExists(kind, spec.name)
    id = next_value(tx, "entry")
    sql = "INSERT INTO entry (id, kind, name_key, spec, state, created_at) VALUES (?, ?, ?, ?, ?, ?)"
    tx.execute(sql, (id, kind, key, _text(spec), RUNNING, now))
    return id


def _update(tx: Tx, kind: str, spec: Spec) -> int:
    id = int(_get(tx, kind, spec.name)[0])
    tx.execute("UPDATE entry SET spec = ? WHERE id = ?", (_text(spec), id))
    return id


def _get(tx: Tx, kind: str, name: str) -> Row:
    sql = "SELECT id, spec, state, created_at FROM entry WHERE kind = ? AND name_key = ?"
    found = row_or_none(tx, sql, (kind, name.lower()))
    if found is None:
        raise NotFound(kind, name, [key for (key,) in tx.rows("SELECT name_key FROM entry WHERE kind = ?", (kind,))])
    return found


def _list(tx: Tx, kind: str) -> list[Row]:
    return tx.rows("SELECT id, spec, state, created_at FROM entry WHERE kind = ? ORDER BY id", (kind,))


def _text(spec: Any) -> str:
    return msgspec.json.encode(spec).decode()


def _dataset(row: Row) -> DatasetRow:
    return DatasetRow(row[0], msgspec.json.decode(row[1], type=DatasetSpec))


def _channel(row: Row) -> ChannelRow:
    return ChannelRow(row[0], msgspec.json.decode(row[1], type=ChannelSpec), row[2], row[3])


def _broker(row: Row) -> BrokerRow:
    return BrokerRow(row[0], msgspec.json.decode(row[1], type=BrokerSpec))


def _feed(row: Row) -> FeedRow:
    return FeedRow(row[0], msgspec.json.decode(row[1], type=FeedSpec), row[2])
