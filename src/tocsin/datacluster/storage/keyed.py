"""Keyed tables as arrays: matching and merging by primary key without a loop over rows.

A table here has the dataset's columns and ``__seq``; a table of *changes* has ``__deleted`` as well
and at most one row a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.compiler.plan import SEQUENCE

DELETED = "__deleted"
Indices = np.ndarray[Any, np.dtype[np.int64]]


def key_array(table: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    """One value a row that is equal exactly where the primary keys are."""
    if len(key) == 1 and not pa.types.is_floating(table.schema.field(key[0]).type):
        return table.column(key[0])
    parts: list[Any] = []
    for name in key:
        text = _text(table.column(name))
        parts += [pc.cast(pc.binary_length(text), pa.string()), text]
    return pc.binary_join_element_wise(*parts, ":")


def match(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Indices:
    """For each of ``left`` the row of ``right`` with the same value, or -1; ``right`` has no repeats.

    The hash table is made of the shorter side.
    """
    if len(right) <= len(left):
        return _numpy(pc.index_in(left, value_set=_whole(right)))
    first, codes = _distinct(left)
    found = _numpy(pc.index_in(right, value_set=first))
    rows = np.flatnonzero(found >= 0)
    by_code = np.full(len(first), -1, np.int64)
    by_code[found[rows]] = rows
    return by_code[codes]


def last_versions(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, in the order of ``__seq``; ``table`` is in that order."""
    if table.num_rows < 2:
        return table
    _, codes = _distinct(key_array(table, key))
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes] = np.arange(len(codes))  # of equal codes the last assignment stays
    if len(last) == len(codes):
        return table
    return table.take(pa.array(np.sort(last)))


def merge_changes(older: pa.Table, newer: pa.Table, key: Sequence[str]) -> pa.Table:
    """The changes of two windows as one; each side has at most one row a key."""
    if not older.num_rows or not newer.num_rows:
        return newer if newer.num_rows else older
    kept = match(key_array(older, key), key_array(newer, key)) < 0
    return pa.concat_tables([older.filter(pa.array(kept)), newer])


def apply_changes(base: pa.Table, changes: pa.Table, key: Sequence[str], base_key: pa.ChunkedArray) -> pa.Table:
    """The state after ``changes``; ``base_key`` is the key array of ``base``."""
    live = alive(changes)
    if not changes.num_rows or not base.num_rows:
        return live if changes.num_rows else base
    kept = match(base_key, key_array(changes, key)) < 0
    return pa.concat_tables([base.filter(pa.array(kept)), live])


def alive(changes: pa.Table) -> pa.Table:
    """The changes that are not deletions, without the mark."""
    deleted = changes.column(DELETED)
    kept = changes if not pc.any(deleted).as_py() else changes.filter(pc.invert(deleted))
    return kept.drop_columns([DELETED])


def take_or_null(table: pa.Table, rows: Indices) -> pa.Table:
    """Rows by index, NULLs for -1."""
    return table.take(pa.array(rows, mask=rows < 0))


def sequence(table: pa.Table) -> Indices:
    return np.asarray(table.column(SEQUENCE).to_numpy(), dtype=np.int64)


def _text(column: pa.ChunkedArray) -> Any:
    kind = column.type
    if pa.types.is_floating(kind):
        column = pc.add(column, 0.0)  # one zero: -0.0 + 0.0 is 0.0
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    return column.cast(pa.string())


def _distinct(column: pa.ChunkedArray) -> tuple[pa.Array, Indices]:
    """The distinct values, and for each row which one it has."""
    encoded = _whole(column).dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _whole(column: Any) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _numpy(indices: Any) -> Indices:
    return np.asarray(_whole(indices).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
