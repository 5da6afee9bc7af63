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
from tocsin.matching.encode import Side, encode_records, offsets_of
from tocsin.matching.fingerprint import Seed
from tocsin.matching.spec import Compare, IndexSpec, Op
from tocsin.matching.spec_json import spec_from_json
from tocsin.matching.spread import record_keys
from tocsin.matching.storage import map_arrays, read_meta
from tocsin.matching.table import look_up, narrow

I64s = NDArray[np.int64]
U32s = NDArray[np.uint32]


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
        self._levels: list[int] = meta["levels"]

    @property
    def ids(self) -> U32s:
        """Every subscription in the index."""
        return self.arrays["ids"]

    def probe(self, table: pa.Table | pa.RecordBatch, rows: NDArray[np.bool_] | None = None) -> Matches:
        """Match the table's rows, or those of them that ``rows`` marks; the others match nothing."""
        return self.match(self.encode(table, rows))

    def encode(self, table: pa.Table | pa.RecordBatch, rows: NDArray[np.bool_] | None = None) -> Side:
        """The records in the form that ``match`` takes; good for every index of the same spec and seed."""
        columns = {name: table.column(name) for name in table.schema.names}
        side = encode_records(self.spec, columns, table.num_rows, self.seed)
        if rows is not None:
            if rows.shape != (side.n,):
                raise BadArgument("rows", f"{side.n} booleans", rows.shape)
            np.logical_and(side.alive, rows, out=side.alive)
        return side

    def match(self, side: Side, removed: Bitset = NO_BITS, more: Matches = NOTHING) -> Matches:
        """Match encoded records, leave out ``removed`` ids (a bitset as long as the largest id here
        demands, or empty) and append ``more`` to each row."""
        segments = self._segments(side)
        room = segments.cumulated()
        if more.offsets.size:
            room = room + more.offsets
        stored = Stored(self.spec, self.access, self.arrays)
        return Collector(stored, side, segments, room, (removed, more.offsets, more.ids)).run()

    def _segments(self, side: Side) -> Segments:
        keys = record_keys(self.spec, self.access, side, self.seed, self._levels)
        begin, end = np.empty(keys.owner.size, np.int64), np.empty(keys.owner.size, np.int64)
        a = self.arrays
        look_up(a["slots"], a["key1"], a["key2"], a["starts"], *keys.lanes, begin, end)
        if self.access.ranges:
            begin, end = self._narrowed(side, keys.owner, begin, end)
        return Segments(offsets_of(keys.owner, side.n), begin, end)

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
