"""The results that a channel keeps, as a table with a row for each backend subscription of each result.

A result that a million share stands there a million times, so the table is bounded in rows, in bytes and by a
deadline, and tells whether it is whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage.resultfiles import Numbers
from tocsin.datacluster.storage.results import ResultRow, ResultStore
from tocsin.errors import LimitExceeded
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column
from tocsin.model.position import START
from tocsin.model.types import SqlType

COLUMNS = (
    Column("id", SqlType("STRING")),
    Column("position", SqlType("STRING")),
    Column("backend", SqlType("BIGINT")),
    Column("result", SqlType("STRING")),
)
_PAGE_ROWS, _PAGE_BYTES = 1000, 1 << 24
_ROW_BYTES = 64  # what stands in a row beside the result


@dataclass(frozen=True, slots=True)
class TableBounds:
    """``timeout_s`` is what a refusal names; ``deadline`` is by the monotonic clock."""

    max_rows: int
    max_bytes: int
    timeout_s: float
    deadline: float

    def check_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise LimitExceeded("seconds a SELECT may run", self.timeout_s)


@dataclass(slots=True)
class _Rows:
    bounds: TableBounds
    values: list[tuple[str, str, int, str]] = field(default_factory=list)
    size_bytes: int = 0
    is_cut: bool = False

    def wanted(self, _: int, ids: Numbers) -> Numbers:
        """Never more pairs than there is place for."""
        self.bounds.check_time()
        mask: Numbers = np.arange(len(ids)) <= self.bounds.max_rows - len(self.values)
        return mask

    def add(self, row: ResultRow) -> None:
        text, position = row.payload.decode(), str(row.position)
        size = len(row.payload) + _ROW_BYTES
        places = min(self.bounds.max_rows - len(self.values), (self.bounds.max_bytes - self.size_bytes) // size)
        self.is_cut |= places < len(row.backends)
        fitting = row.backends[:places]
        self.values += [(f"{row.row_id}-{backend}", position, backend, text) for backend in fitting]
        self.size_bytes += size * len(fitting)


def results_table(results: ResultStore, channel_id: int, bounds: TableBounds) -> tuple[pa.Table, bool]:
    """What is kept, oldest first, and whether it was cut; LimitExceeded at the deadline."""
    rows, after, is_end = _Rows(bounds), START, False
    while not is_end and not rows.is_cut:
        page = results.page(channel_id, after, rows.wanted, _PAGE_ROWS, _PAGE_BYTES)
        for row in page.rows:
            rows.add(row)
            if rows.is_cut:
                break
        after, is_end = page.through, page.is_end
    return as_table(COLUMNS, rows.values), rows.is_cut


def as_table(columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [pa.array(v, arrow_type(c.type)) for c, v in zip(columns, values, strict=True)]
    return pa.Table.from_arrays(arrays, names=[c.name for c in columns])
