"""How far a dataset is known to have come, by the ledger: against logs that are cut off behind our back.

``head`` is noted from time to time, so it may lie behind the log, never before it. Of the dead letters
up to the noted head of their dataset, ``rejected`` says how many each dataset has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tocsin.datacluster.storage.transaction import Tx, row_or_none


@dataclass(frozen=True, slots=True)
class Progress:
    head: int = 0
    rejected: int = 0


def note(tx: Tx, progress: Mapping[int, Progress]) -> None:
    """Write it down for datasets that still exist; a head never goes back."""
    sql = """INSERT INTO dataset_progress (dataset_id, head, rejected)
             SELECT ?, ?, ? FROM entry WHERE id = ? AND kind = 'dataset'
             ON CONFLICT (dataset_id) DO UPDATE SET rejected = excluded.rejected,
             head = CASE WHEN excluded.head > dataset_progress.head THEN excluded.head ELSE dataset_progress.head END"""
    tx.executemany(sql, [(id, p.head, p.rejected, id) for id, p in progress.items()])


def noted(tx: Tx) -> dict[int, Progress]:
    rows = tx.rows("SELECT dataset_id, head, rejected FROM dataset_progress")
    return {id: Progress(head, rejected) for id, head, rejected in rows}


def reached(tx: Tx, dataset_id: int) -> int:
    """The highest number of a dataset that a channel has seen, begun to see, or that was noted."""
    sql = """SELECT max(seen) FROM (
                 SELECT through AS seen FROM channel_window WHERE dataset_id = ?
                 UNION ALL SELECT head FROM dataset_progress WHERE dataset_id = ?) AS known"""
    found = row_or_none(tx, sql, (dataset_id, dataset_id))
    begun = tx.rows("SELECT bounds FROM execution WHERE state = 'started'")
    bounds = [msgspec.json.decode(text, type=dict[int, tuple[int, int]]) for (text,) in begun]
    return max((found[0] if found else 0) or 0, *(b[dataset_id][1] for b in bounds if dataset_id in b), 0)
