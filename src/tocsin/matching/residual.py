"""Tests of candidate pairs (row of the records, owner among the subscriptions), one kernel a kind.

Each squeezes the pairs that fail out of the arrays, keeps the order and returns how many are left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.jit import helper, i64, kernel, ro, rw, u32, u64
from tocsin.matching.spec import Op

I64s = NDArray[np.int64]
U32s = NDArray[np.uint32]
U64s = NDArray[np.uint64]

OP_CODES = {Op.LT: 0, Op.LE: 1, Op.GT: 2, Op.GE: 3}


@helper
def _holds(order: int, op: int) -> bool:
    """Whether ``op`` accepts a record that stands below (-1), at (0) or above (1) the parameter."""
    if order == 0:
        return op == 1 or op == 3
    return (order < 0) == (op < 2)


@kernel(rw(i64), rw(u32), i64, i64, ro(i64), ro(u64), ro(i64), ro(u64))
def keep_compared(row: I64s, owner: U32s, n: int, op: int, highs: I64s, lows: U64s, high: I64s, low: U64s) -> int:
    kept = 0
    for i in range(n):
        r, o = row[i], owner[i]
        order = (highs[r] > high[o]) - (highs[r] < high[o])
        if order == 0 and low.size:
            order = (lows[r] > low[o]) - (lows[r] < low[o])
        row[kept], owner[kept] = r, o
        kept += _holds(order, op)
    return kept


@helper
def _contains(lane1: U64s, lane2: U64s, lo: int, hi: int, a: np.uint64, b: np.uint64) -> bool:
    """Whether the fingerprint is in ``lo:hi``, which is sorted by the first lane."""
    end = hi
    while lo < hi:
        mid = (lo + hi) // 2
        if lane1[mid] < a:
            lo = mid + 1
        else:
            hi = mid
    while lo < end and lane1[lo] == a:
        if lane2[lo] == b:
            return True
        lo += 1
    return False


@kernel(rw(i64), rw(u32), i64, ro(u64), ro(u64), ro(i64), ro(u64), ro(u64))
def keep_members(
    row: I64s, owner: U32s, n: int, ones: U64s, twos: U64s, offsets: I64s, lane1: U64s, lane2: U64s
) -> int:
    """The record's value is among the subscription's elements."""
    kept = 0
    for i in range(n):
        r, o = row[i], owner[i]
        row[kept], owner[kept] = r, o
        kept += _contains(lane1, lane2, offsets[o], offsets[o + 1], ones[r], twos[r])
    return kept


@kernel(rw(i64), rw(u32), i64, ro(i64), ro(u64), ro(u64), ro(u64), ro(u64))
def keep_worded(row: I64s, owner: U32s, n: int, offsets: I64s, ones: U64s, twos: U64s, lane1: U64s, lane2: U64s) -> int:
    """The subscription's word is among those of the record."""
    kept = 0
    for i in range(n):
        r, o = row[i], owner[i]
        row[kept], owner[kept] = r, o
        for w in range(offsets[r], offsets[r + 1]):
            if ones[w] == lane1[o] and twos[w] == lane2[o]:
                kept += 1
                break
    return kept
