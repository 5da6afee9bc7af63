"""Both sides of an index as arrays: the parameters of subscriptions, the probe columns of records.

For the predicate at position i a side holds arrays named ``(i, part)``:

=========  ==========================================  =========================================
predicate  parts of a subscription                     parts of a record
=========  ==========================================  =========================================
Equal      one, two: the fingerprint's lanes           the same
Member     offsets, one, two: distinct elements        one, two
Compare    high, low: see ``columns.ordered``          the same
HasWord    one, two: the word's lanes                  offsets, one, two: distinct words
Near       x, y; radius, limit where it knows them     x, y; radius, limit where it brings them
=========  ==========================================  =========================================

``alive`` is false where a value that some predicate needs is NULL: such a side meets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.access import meeting_type
from tocsin.matching.columns import flat, floats, ordered, valid
from tocsin.matching.distance import limits
from tocsin.matching.fingerprint import Seed, lanes
from tocsin.matching.siphash import Lanes
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Near
from tocsin.matching.words import param_lanes, word_lanes
from tocsin.model.types import SqlType

Columns = Mapping[str, pa.Array | pa.ChunkedArray]
Parts = dict[tuple[int, str], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """``n`` subscriptions or records, encoded."""

    n: int
    alive: NDArray[np.bool_]
    parts: Parts

    def lanes(self, i: int) -> Lanes:
        return self.parts[i, "one"], self.parts[i, "two"]


def encode_params(spec: IndexSpec, params: Columns, n: int, seed: Seed) -> Side:
    return _encode(spec, _Reader(spec, seed, n, params, "parameter"))


def encode_records(spec: IndexSpec, records: Columns, n: int, seed: Seed) -> Side:
    return _encode(spec, _Reader(spec, seed, n, records, "column"))


class _Reader:
    """Reads columns by name, remembers where one was NULL, and gathers parts."""

    def __init__(self, spec: IndexSpec, seed: Seed, n: int, columns: Columns, kind: str) -> None:
        self.spec, self.seed, self.columns, self.kind = spec, seed, columns, kind
        self.side = Side(n, np.ones(n, np.bool_), {})
        self.is_param = kind == "parameter"

    def column(self, name: str) -> pa.Array:
        if name not in self.columns:
            raise BadArgument(f"{self.kind} {name}", f"a {self.kind} of that name", sorted(self.columns))
        column = flat(self.columns[name])
        if len(column) != self.side.n:
            raise BadArgument(f"{self.kind} {name}", f"{self.side.n} values", len(column))
        np.logical_and(self.side.alive, valid(column), out=self.side.alive)
        return column

    def put(self, i: int, **parts: NDArray[Any]) -> None:
        self.side.parts.update({(i, name): values for name, values in parts.items()})


def _encode(spec: IndexSpec, reader: _Reader) -> Side:
    for i, predicate in enumerate(spec.predicates):
        _ENCODERS[type(predicate)](i, predicate, reader)
    return reader.side


def _equal(i: int, p: Equal, reader: _Reader) -> None:
    name = p.param if reader.is_param else p.probe
    one, two = lanes(reader.column(name), meeting_type(reader.spec, p), reader.seed, name)
    reader.put(i, one=one, two=two)


def _compare(i: int, p: Compare, reader: _Reader) -> None:
    name = p.param if reader.is_param else p.probe
    high, low = ordered(reader.column(name), meeting_type(reader.spec, p), name)
    reader.put(i, high=high, low=low)


def _member(i: int, p: Member, reader: _Reader) -> None:
    kind = meeting_type(reader.spec, p)
    if not reader.is_param:
        one, two = lanes(reader.column(p.probe), kind, reader.seed, p.probe)
        return reader.put(i, one=one, two=two)
    owner, (one, two) = _elements(reader.column(p.param), kind, reader.seed, p.param)
    order = np.lexsort((two, one, owner))
    owner, one, two = owner[order], one[order], two[order]
    is_new = np.ones(owner.size, np.bool_)
    is_new[1:] = (owner[1:] != owner[:-1]) | (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    return reader.put(i, offsets=offsets_of(owner[is_new], reader.side.n), one=one[is_new], two=two[is_new])


def _elements(column: pa.Array, kind: SqlType, seed: Seed, where: str) -> tuple[NDArray[np.int64], Lanes]:
    """(owner, fingerprint) of every element that is not NULL."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.list_(pa.null()))
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise BadArgument(where, "lists", str(column.type))
    owner = column.value_parent_indices().to_numpy(zero_copy_only=False).astype(np.int64)
    elements = column.flatten()
    is_there = valid(elements)
    one, two = lanes(elements, kind, seed, where)
    return owner[is_there], (one[is_there], two[is_there])


def _has_word(i: int, p: HasWord, reader: _Reader) -> None:
    if reader.is_param:
        is_word, (one, two) = param_lanes(reader.column(p.param), reader.seed, p.param)
        np.logical_and(reader.side.alive, is_word, out=reader.side.alive)
        return reader.put(i, one=one, two=two)
    row, (one, two) = word_lanes(reader.column(p.probe), reader.seed, p.probe)
    return reader.put(i, offsets=offsets_of(row, reader.side.n), one=one, two=two)


def _near(i: int, p: Near, reader: _Reader) -> None:
    x, y = (p.x_param, p.y_param) if reader.is_param else (p.x_probe, p.y_probe)
    reader.put(i, x=floats(reader.column(x), x), y=floats(reader.column(y), y))
    name = p.radius_param if reader.is_param else p.radius_probe
    if name is not None:
        radius = floats(reader.column(name), name)
    elif reader.is_param and p.radius_const is not None:
        radius = np.full(reader.side.n, float(p.radius_const))
    else:
        return
    reader.put(i, radius=radius, limit=limits(radius, p.inclusive))


_ENCODERS: dict[type, Callable[[int, Any, _Reader], None]] = {
    Equal: _equal,
    Compare: _compare,
    Member: _member,
    HasWord: _has_word,
    Near: _near,
}


def offsets_of(owner: NDArray[Any], n: int) -> NDArray[np.int64]:
    """n + 1 offsets of the runs of an ascending array of owners."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(owner, minlength=n), dtype=np.int64)])
