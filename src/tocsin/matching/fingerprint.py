"""Values as two 64-bit lanes, equal exactly where the values are equal in the type they meet in.

Numbers, booleans, dates, timestamps and decimals are encoded injectively: the first lane holds the
integer, the double's bits (one zero, one NaN) or the low half of a decimal, the second the
decimal's high half, else 0. Strings are hashed to 128 bits (keyed SipHash over UTF-8), and equal
fingerprints are taken for equal strings: among n distinct strings the chance that any two collide
is about n² / 2**129, for a hundred million strings about 1.5e-23, and the secret key keeps anyone
from searching for such a pair. Keys of the hash table are 128-bit hashes of lanes, so there the same
bound holds for every type.
"""

from __future__ import annotations

import functools
import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.columns import canonical_bits, decimal_words, floats, integers
from tocsin.matching.siphash import Lanes, empty_lanes, fold_cells, fold_pairs, hash_strings
from tocsin.model.types import SqlType

Seed = tuple[int, int]


@functools.cache
def process_seed() -> Seed:
    """A random key for the indexes that this process makes; with one key they share encoded records."""
    return int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))


def lanes(column: pa.Array, sql: SqlType, seed: Seed, where: str) -> Lanes:
    """Fingerprints of the values as ``sql``; what stands where a value is NULL means nothing."""
    if sql.name == "STRING":
        return string_lanes(column, seed, where)
    if sql.name == "DECIMAL":
        low, high = decimal_words(column, sql, where)
        return low, high.view(np.uint64)
    whole = canonical_bits(floats(column, where)) if sql.name == "DOUBLE" else integers(column, sql, where)
    return whole.view(np.uint64), np.zeros(whole.size, np.uint64)


def string_lanes(column: pa.Array, seed: Seed, where: str) -> Lanes:
    out = empty_lanes(len(column))
    data, offsets = string_buffers(column, where)
    hash_strings(data, offsets, np.uint64(seed[0]), np.uint64(seed[1]), *out)
    return out


def string_buffers(column: pa.Array, where: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all strings, and n + 1 offsets into them."""
    if pa.types.is_null(column.type) or len(column) == 0:
        return np.empty(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if not pa.types.is_string_view(column.type):
            raise BadArgument(where, "strings", str(column.type))
        column = pc.cast(column, pa.large_string())
    _, offsets, data = column.buffers()
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    ends = np.frombuffer(offsets, width, len(column) + 1, column.offset * np.dtype(width).itemsize)
    return np.frombuffer(data or b"", np.uint8), ends.astype(np.int64)


def folded(seed: Seed, owner: NDArray[np.int32], heads: Lanes, tails: Lanes) -> Lanes:
    """Keys of (head of the owner, tail) pairs."""
    out = empty_lanes(owner.size)
    fold_pairs(owner, *heads, *tails, np.uint64(seed[0]), np.uint64(seed[1]), *out)
    return out


def folded_cells(
    seed: Seed, owner: NDArray[np.int32], heads: Lanes, level: NDArray[np.int32], cells: tuple[NDArray[np.int64], ...]
) -> Lanes:
    """Keys of (head of the owner, level, cell) tuples."""
    out = empty_lanes(owner.size)
    cx, cy, cz = cells if len(cells) == 3 else (*cells, np.empty(0, np.int64))
    fold_cells(owner, *heads, level, cx, cy, cz, np.uint64(seed[0]), np.uint64(seed[1]), *out)
    return out
