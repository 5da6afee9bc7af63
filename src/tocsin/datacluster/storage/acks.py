"""How far each broker has acknowledged each channel: a high-water mark that never goes back."""

from __future__ import annotations

from tocsin.datacluster.storage.transaction import Tx
from tocsin.model.position import Position


def acknowledge(tx: Tx, broker_id: int, channel_id: int, position: Position) -> None:
    """Everything through ``position`` arrived; an older position changes nothing."""
    sql = """INSERT INTO acknowledgement (broker_id, channel_id, position) VALUES (?, ?, ?)
             ON CONFLICT (broker_id, channel_id) DO UPDATE SET position = excluded.position
             WHERE excluded.position > acknowledgement.position"""
    tx.execute(sql, (broker_id, channel_id, str(position)))


def acknowledged(tx: Tx, broker_id: int) -> dict[int, Position]:
    """The mark of every channel that the broker has acknowledged something of."""
    sql = "SELECT channel_id, position FROM acknowledgement WHERE broker_id = ?"
    return {channel: Position.parse(text) for channel, text in tx.rows(sql, (broker_id,))}
