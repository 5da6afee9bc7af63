"""A large index, a small one with what was added since, and the ids that were removed from the large one.

Ids in ``delta`` are live whatever ``removed`` says: it speaks of ``base`` only. A row's ids come from
``base`` first, then from ``delta``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.matching.collect import NO_BITS, NOTHING, Bitset, Matches
from tocsin.matching.encode import Side
from tocsin.matching.index import Index


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

    def probe(self, table: pa.Table | pa.RecordBatch, rows: NDArray[np.bool_] | None = None) -> Matches:
        """Match the table's rows, or those of them that ``rows`` marks; the others match nothing."""
        first = self.base or self.delta
        if first is None:
            return Matches(np.zeros(table.num_rows + 1, np.int64), np.empty(0, np.uint32))
        side = first.encode(table, rows)
        if self.base is None:
            return first.match(side)
        return self.base.match(side, self._removed(self.base), self._added(side, table, rows))

    def _added(self, side: Side, table: pa.Table | pa.RecordBatch, rows: NDArray[np.bool_] | None) -> Matches:
        if self.base is None or self.delta is None or self.delta.count == 0:
            return NOTHING
        is_shared = (self.delta.spec, self.delta.seed) == (self.base.spec, self.base.seed)
        return self.delta.match(side if is_shared else self.delta.encode(table, rows))

    def _removed(self, base: Index) -> Bitset:
        """The bits, long enough for every id of the base; none where none is set."""
        if self.removed is None or not self.removed.any():
            return NO_BITS
        return np.pad(self.removed, (0, max(0, (base.max_id >> 3) + 1 - self.removed.size)))
