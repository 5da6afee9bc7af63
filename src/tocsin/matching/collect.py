"""Walking the candidates of records and collecting what matches.

A record's candidates are *segments*, runs of entries of an index. Where a distance decides, the scan
tests it entry by entry. Residual tests take the candidates in blocks of rows, so that memory stays bounded
however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.access import Access
from tocsin.matching.distance import emit, keep_near, scan_all, scan_planar, scan_sphere, unit_vectors
from tocsin.matching.encode import Side
from tocsin.matching.residual import OP_CODES, keep_compared, keep_members, keep_worded
from tocsin.matching.spec import Compare, HasWord, IndexSpec, Member, Metric, Near

I64s = NDArray[np.int64]
U32s = NDArray[np.uint32]
Bitset = NDArray[np.uint8]
Merge = tuple[Bitset, I64s, U32s]  # removed ids; offsets and ids of what to append to each row

_BLOCK = 1 << 20  # candidates held for residual tests
_ROOM = 1 << 26  # ids to make room for at first, where the candidates are more

NO_BITS: Bitset = np.empty(0, np.uint8)
_NO_FLOATS = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True)
class Matches:
    """Row i matched the subscriptions ``ids[offsets[i]:offsets[i + 1]]``, each once."""

    offsets: I64s
    ids: U32s

    @property
    def pairs(self) -> int:
        return self.ids.size


NOTHING = Matches(np.empty(0, np.int64), np.empty(0, np.uint32))


@dataclass(frozen=True, slots=True)
class Segments:
    """The candidates of row i: entries ``begin[s]:end[s]``, s in ``rows[i]:rows[i + 1]``."""

    rows: I64s
    begin: I64s
    end: I64s

    def cumulated(self) -> I64s:
        """How many candidates the first i rows have."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.end - self.begin, dtype=np.int64)])
        return sums[self.rows]


@dataclass(frozen=True, slots=True)
class Stored:
    """What an index holds."""

    spec: IndexSpec
    access: Access
    arrays: dict[str, NDArray[Any]]


class Collector:
    """One probe: walks blocks of rows, each with room for all its candidates."""

    def __init__(self, stored: Stored, side: Side, segments: Segments, room: I64s, merge: Merge) -> None:
        self.stored, self.side, self.segments, self.room, self.merge = stored, side, segments, room, merge
        self.offsets = np.zeros(side.n + 1, np.int64)
        self.out = np.empty(min(int(room[-1]), _ROOM), np.uint32)
        self.vectors: tuple[NDArray[Any], ...] = ()

    def run(self) -> Matches:
        has_residuals = bool(self.stored.access.residuals)
        row, n = 0, self.side.n
        while row < n:
            until = self._next(row, _BLOCK if has_residuals else self.out.size - int(self.offsets[row]))
            self._make_room(row, until)
            if has_residuals:
                self._test_block(row, until)
            else:
                payload = self.stored.arrays["entry_id"]
                self._scan(row, until, payload, self.merge, self.out, self.offsets)
            row = until
        self.out.resize(int(self.offsets[-1]), refcheck=False)
        return Matches(self.offsets, self.out)

    def _next(self, row: int, candidates: int) -> int:
        """The end of the block of rows with at most so many candidates, but one row at least."""
        return max(row + 1, int(np.searchsorted(self.room, self.room[row] + candidates, side="right")) - 1)

    def _make_room(self, row: int, until: int) -> None:
        filled = int(self.offsets[row])
        needed = filled + int(self.room[until] - self.room[row])
        if needed > self.out.size:
            wider = np.empty(max(needed, 2 * self.out.size), np.uint32)
            wider[:filled] = self.out[:filled]
            self.out = wider

    def _scan(self, row0: int, row1: int, payload: U32s, merge: Merge, out: U32s, offsets: I64s) -> None:
        a, i, s = self.stored.arrays, self.stored.access.spread, self.segments
        head = (row0, row1, s.rows, s.begin, s.end, payload)
        if "entry_x" in a:
            xy = self.side.parts[i or 0, "x"], self.side.parts[i or 0, "y"]
            scan_planar(*head, a["entry_x"], a["entry_y"], a["entry_limit"], *xy, *merge, out, offsets)
        elif "entry_u" in a:
            entries = [a[f"entry_{name}"] for name in ("u", "v", "w", "low", "high", "owner")]
            places = [a[f"p{i}_{name}"] for name in ("x", "y", "limit")]
            scan_sphere(*head, *entries, *places, *self._vectors(i or 0), *merge, out, offsets)
        else:
            scan_all(*head, *merge, out, offsets)

    def _vectors(self, i: int) -> tuple[NDArray[Any], ...]:
        if not self.vectors:
            lat, lon = self.side.parts[i, "x"], self.side.parts[i, "y"]
            self.vectors = (lat, lon, *unit_vectors(lat, lon))
        return self.vectors

    def _test_block(self, row0: int, row1: int) -> None:
        found = np.empty(int(self.room[row1] - self.room[row0]), np.uint32)
        offsets = np.zeros(self.side.n + 1, np.int64)
        nothing = (NO_BITS, NOTHING.offsets, NOTHING.ids)
        self._scan(row0, row1, self.stored.arrays["entry_owner"], nothing, found, offsets)
        row = np.repeat(np.arange(row0, row1), np.diff(offsets[row0 : row1 + 1]))
        n = row.size
        for i in self.stored.access.residuals:
            n = self._keep(i, row, found, n)
        emit(row0, row1, row, found, n, self.stored.arrays["ids"], *self.merge, self.out, self.offsets)

    def _keep(self, i: int, row: I64s, owner: U32s, n: int) -> int:
        return _KEEPERS[type(self.stored.spec.predicates[i])](self, i, row, owner, n)

    def mine(self, i: int, *parts: str) -> list[NDArray[Any]]:
        """Parts of the records; empty where they have none."""
        return [self.side.parts.get((i, part), _NO_FLOATS) for part in parts]

    def theirs(self, i: int, *parts: str) -> list[NDArray[Any]]:
        """Parts of the subscriptions; empty where they have none."""
        return [self.stored.arrays.get(f"p{i}_{part}", _NO_FLOATS) for part in parts]


def _keep_compared(c: Collector, i: int, row: I64s, owner: U32s, n: int) -> int:
    predicate = c.stored.spec.predicates[i]
    assert isinstance(predicate, Compare)
    return int(
        keep_compared(row, owner, n, OP_CODES[predicate.op], *c.mine(i, "high", "low"), *c.theirs(i, "high", "low"))
    )


def _keep_members(c: Collector, i: int, row: I64s, owner: U32s, n: int) -> int:
    return int(keep_members(row, owner, n, *c.mine(i, "one", "two"), *c.theirs(i, "offsets", "one", "two")))


def _keep_worded(c: Collector, i: int, row: I64s, owner: U32s, n: int) -> int:
    return int(keep_worded(row, owner, n, *c.mine(i, "offsets", "one", "two"), *c.theirs(i, "one", "two")))


def _keep_near(c: Collector, i: int, row: I64s, owner: U32s, n: int) -> int:
    predicate = c.stored.spec.predicates[i]
    is_sphere = isinstance(predicate, Near) and predicate.metric is Metric.SPHERE
    return int(keep_near(row, owner, n, is_sphere, *c.mine(i, "x", "y", "limit"), *c.theirs(i, "x", "y", "limit")))


_KEEPERS = {Compare: _keep_compared, Member: _keep_members, HasWord: _keep_worded, Near: _keep_near}
