"""A large index, a small one with what was added since, and the ids that were removed from the large one.

Ids in ``delta`` are live whatever ``removed`` says: it speaks of ``base`` only. A row's ids come from
``base`` first, then from ``delta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.matching.collect import NO_BITS, NOTHING, Bitset, Matches
from tocsin.matching.index import Index, Rows
from tocsin.matching.records import Records


def bitset(ids: NDArray[np.uint32]) -> Bitset:
    """Bit ``id & 7`` of byte ``id >> 3`` is set for each id; as long as the largest demands."""
    bits = np.zeros((int(ids.max()) >> 3) + 1 if ids.size else 0, np.uint8)
    np.bitwise_or.at(bits, ids >> 3, np.left_shift(1, ids & 7).astype(np.uint8))
    return bits


@dataclass(frozen=True, slots=True)
class LayeredIndex:
    base: Index | None
    delta: Index | None
    removed: Bitset | None = None

    def probe(self, table: pa.Table | pa.RecordBatch, rows: Rows | None = None) -> Matches:
        """Match the table's rows, or those of them that ``rows`` marks; the others match nothing."""
        return self.match(Records(table), None, rows)

    def match(self, records: Records, names: Mapping[str, str] | None, rows: Rows | None = None) -> Matches:
        """The same for records that other indexes are probed with too, see ``Records.encoded``."""
        added = self.delta.match(records.encoded(self.delta, names), rows) if self.delta is not None else NOTHING
        if self.base is None:
            return added if self.delta is not None else Matches(np.zeros(len(records) + 1, np.int64), NOTHING.ids)
        return self.base.match(records.encoded(self.base, names), rows, self._removed(self.base), added)

    def _removed(self, base: Index) -> Bitset:
        """The bits, long enough for every id of the base; none where none is set."""
        if self.removed is None or not self.removed.any():
            return NO_BITS
        return np.pad(self.removed, (0, max(0, (base.max_id >> 3) + 1 - self.removed.size)))
