"""Records as indexes look for them, encoded once for all that look the same way.

Twenty channels over one dataset often probe with the same columns. What a record looks under depends on the
index's spec, seed and levels alone, not on who subscribed to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.matching.access import Access
from tocsin.matching.encode import Side, encode_records, offsets_of
from tocsin.matching.fingerprint import Seed
from tocsin.matching.spec import IndexSpec
from tocsin.matching.spread import Keys, record_keys


class Probed(Protocol):
    """What decides how an index is probed."""

    spec: IndexSpec
    seed: Seed
    access: Access
    levels: tuple[int, ...]


class Encoded(NamedTuple):
    """The values of records, and the keys under which each looks: row i under ``rows[i]:rows[i + 1]`` of them."""

    side: Side
    keys: Keys
    rows: NDArray[np.int64]


class Records:
    """The rows of one table. Not for several threads."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self._table = table
        self._sides: dict[object, Side] = {}
        self._encoded: dict[object, Encoded] = {}

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def encoded(self, index: Probed, names: Mapping[str, str] | None = None) -> Encoded:
        """What ``index`` is probed with; ``names`` says which column of the table stands for which of its own."""
        how = (index.spec, index.seed, index.levels, tuple(names.items()) if names is not None else None)
        found = self._encoded.get(how)
        if found is None:
            side = self._side(index, names)
            keys = record_keys(index.spec, index.access, side, index.seed, index.levels)
            found = self._encoded[how] = Encoded(side, keys, offsets_of(keys.owner, side.n))
        return found

    def _side(self, index: Probed, names: Mapping[str, str] | None) -> Side:
        """The values alone; indexes of one spec whose levels differ share them."""
        how = (index.spec, index.seed, tuple(names.items()) if names is not None else None)
        if how not in self._sides:
            names = names if names is not None else {name: name for name in self._table.schema.names}
            columns = {name: self._table.column(column) for name, column in names.items()}
            self._sides[how] = encode_records(index.spec, columns, self._table.num_rows, index.seed)
        return self._sides[how]
