"""An index opened from its directory, and how records probe it.

Opening maps the files and reads only the meta data. Several threads may probe one index.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.access import Access, choose_access, meeting_type
from tocsin.matching.collect import NO_BITS, NOTHING, Bitset, Collector, Matches, Segments, Stored
from tocsin.matching.columns import is_wide
from tocsin.matching.encode import Side
from tocsin.matching.fingerprint import Seed
from tocsin.matching.records import Encoded, Records
from tocsin.matching.spec import Compare, IndexSpec, Op
from tocsin.matching.spec_json import spec_from_json
from tocsin.matching.storage import map_arrays, read_meta
from tocsin.matching.table import look_up, narrow

I64s = NDArray[np.int64]
U32s = NDArray[np.uint32]
Rows = NDArray[np.bool_]


def open_index(directory: Path) -> Index:
    """Map the index; Corrupt where the directory is not whole."""
    meta = read_meta(directory)
    return Index(directory, meta, map_arrays(directory, meta))


class Index:
    def __init__(self, directory: Path, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.directory, self.arrays = directory, arrays
        self.spec: IndexSpec = spec_from_json(meta["spec"])
        self.seed: Seed = (int(meta["seed"][0]), int(meta["seed"][1]))
        self.count: int = meta["count"]
        self.access: Access = choose_access(self.spec)
        self.max_id: int = meta["max_id"]
        self.levels = tuple[int, ...](meta["levels"])

    @property
    def ids(self) -> U32s:
        """Every subscription in the index."""
        return self.arrays["ids"]

    def probe(self, table: pa.Table | pa.RecordBatch, rows: Rows | None = None) -> Matches:
        """Match the table's rows, or those of them that ``rows`` marks; the others match nothing."""
        return self.match(Records(table).encoded(self), rows)

    def match(
        self, records: Encoded, rows: Rows | None = None, removed: Bitset = NO_BITS, more: Matches = NOTHING
    ) -> Matches:
        """Match encoded records, leave out ``removed`` ids (a bitset as long as the largest id here
        demands, or empty) and append ``more`` to each row."""
        side = records.side
        if rows is not None and rows.shape != (side.n,):
            raise BadArgument("rows", f"{side.n} booleans", rows.shape)
        segments = self._segments(records, rows)
        room = segments.cumulated()
        if more.offsets.size:
            room = room + more.offsets
        stored = Stored(self.spec, self.access, self.arrays)
        return Collector(stored, side, segments, room, (removed, more.offsets, more.ids)).run()

    def _segments(self, records: Encoded, rows: Rows | None) -> Segments:
        side, keys = records.side, records.keys
        begin, end = np.empty(keys.owner.size, np.int64), np.empty(keys.owner.size, np.int64)
        a = self.arrays
        look_up(a["slots"], a["key1"], a["key2"], a["starts"], *keys.lanes, begin, end)
        if rows is not None:
            end = np.where(rows[keys.owner], end, begin)
        if self.access.ranges:
            begin, end = self._narrowed(side, keys.owner, begin, end)
        return Segments(records.rows, begin, end)

    def _narrowed(self, side: Side, owner: NDArray[np.int32], lo: I64s, hi: I64s) -> tuple[I64s, I64s]:
        begin, end = lo.copy(), hi.copy()
        values = self.arrays["range_values"]
        size = values.size // len(self.access.ranges)
        for k, i in enumerate(self.access.ranges):
            predicate = self.spec.predicates[i]
            assert isinstance(predicate, Compare)
            is_upper = predicate.op in (Op.LT, Op.LE)
            is_inclusive = predicate.op in (Op.LE, Op.GE) or is_wide(meeting_type(self.spec, predicate))
            wanted = side.parts[i, "high"][owner]
            narrow(values, k * size, is_upper, is_upper != is_inclusive, wanted, lo, hi, begin, end)
        return begin, end
