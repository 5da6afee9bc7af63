"""The dataset ``DeadLetters``, and how many of its records each dataset has sent there.

Counts follow from the letters' log alone, from a number up to which they were written down: so they
survive a restart, and retention of the letters does not take from them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.parse_records import BadRecord
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

DEAD_LETTERS = DatasetSpec(
    "DeadLetters",
    (
        Column("dataset", SqlType("STRING"), not_null=True),
        Column("reason", SqlType("STRING"), not_null=True),
        Column("raw", SqlType("STRING"), not_null=True),
        Column("at", SqlType("TIMESTAMP"), not_null=True),
    ),
    retain=Retention(records=100_000),
)


def letters_table(dataset: str, bad: Sequence[BadRecord], at: float) -> pa.Table:
    """Records that do not fit, as letters of the moment ``at``."""
    columns = {
        "dataset": [dataset] * len(bad),
        "reason": [b.reason for b in bad],
        "raw": [b.raw for b in bad],
        "at": pa.array([int(at * 1e6)] * len(bad), pa.int64()),
    }
    return pa.table(columns).cast(arrow_schema(DEAD_LETTERS))


class Rejections:
    """Letters by the lower-case name of their dataset. May be used from any thread."""

    def __init__(self, letters: DatasetStore, counted: Mapping[str, int], through: int) -> None:
        self._letters, self._counted, self._through = letters, Counter(counted), through
        self._lock = threading.Lock()

    def counts(self) -> tuple[dict[str, int], int]:
        """All counts, and the letters' number up to which they were taken."""
        with self._lock:
            self._count()
            return dict(self._counted), self._through

    def forget(self, dataset: str) -> None:
        with self._lock:
            self._count()
            self._counted.pop(dataset.lower(), None)

    def _count(self) -> None:
        head = self._letters.head
        if head <= self._through or self._letters.is_faulted:
            return
        names = self._letters.new(self._through, head).column("dataset")
        found = pc.value_counts(pc.utf8_lower(names.combine_chunks()))
        self._counted.update({pair["values"]: pair["counts"] for pair in found.to_pylist()})
        self._through = head
