"""A hash table from 128-bit keys to buckets of consecutive entries.

``slots`` is open addressing with linear probing: a slot holds a bucket number or -1, and there are
at least twice as many slots as buckets. Bucket b has the key (``key1[b]``, ``key2[b]``) and the
entries ``starts[b]:starts[b + 1]``. Buckets are numbered as their keys first appear, and entries
keep their order within a bucket, so the same input gives the same arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.jit import helper, i32, i64, kernel, ro, rw, u64

U64s = NDArray[np.uint64]
I64s = NDArray[np.int64]
I32s = NDArray[np.int32]


@helper
def _find(slots: I32s, key1: U64s, key2: U64s, a: np.uint64, b: np.uint64) -> np.int64:
    """The slot that holds the key, or the free one where it belongs."""
    mask = np.uint64(slots.size - 1)
    at = a & mask
    while True:
        bucket = slots[at]
        if bucket < 0 or (key1[bucket] == a and key2[bucket] == b):
            return np.int64(at)
        at = (at + np.uint64(1)) & mask


@helper
def _grown(slots: I32s, key1: U64s, key2: U64s, n: int) -> tuple[I32s, U64s, U64s]:
    wide1, wide2 = np.empty(n * 2, np.uint64), np.empty(n * 2, np.uint64)
    wide1[:n], wide2[:n] = key1[:n], key2[:n]
    bigger = np.full(slots.size * 2, -1, np.int32)
    for b in range(n):
        bigger[_find(bigger, wide1, wide2, wide1[b], wide2[b])] = b
    return bigger, wide1, wide2


@kernel(ro(u64), ro(u64))
def group_keys(a: U64s, b: U64s) -> tuple[I32s, I32s, U64s, U64s]:
    """The bucket of each key, and the table: (bucket, slots, key1, key2)."""
    slots = np.full(2048, -1, np.int32)
    key1, key2 = np.empty(1024, np.uint64), np.empty(1024, np.uint64)
    bucket = np.empty(a.size, np.int32)
    n = 0
    for i in range(a.size):
        at = _find(slots, key1, key2, a[i], b[i])
        if slots[at] < 0:
            if n == key1.size:
                slots, key1, key2 = _grown(slots, key1, key2, n)
                at = _find(slots, key1, key2, a[i], b[i])
            slots[at] = n
            key1[n], key2[n] = a[i], b[i]
            n += 1
        bucket[i] = slots[at]
    return bucket, slots, key1[:n].copy(), key2[:n].copy()


@kernel(ro(i32), i64)
def bucket_order(bucket: I32s, buckets: int) -> tuple[I64s, I64s]:
    """Where each bucket starts, and the place of each entry among all, in stable order."""
    starts = np.zeros(buckets + 1, np.int64)
    for i in range(bucket.size):
        starts[bucket[i] + 1] += 1
    for b in range(buckets):
        starts[b + 1] += starts[b]
    free = starts.copy()
    place = np.empty(bucket.size, np.int64)
    for i in range(bucket.size):
        place[i] = free[bucket[i]]
        free[bucket[i]] += 1
    return starts, place


@kernel(ro(i32), ro(u64), ro(u64), ro(i64), ro(u64), ro(u64), rw(i64), rw(i64))
def look_up(slots: I32s, key1: U64s, key2: U64s, starts: I64s, a: U64s, b: U64s, begin: I64s, end: I64s) -> None:
    """The entries ``begin[i]:end[i]`` of each key; none where the key is unknown."""
    for i in range(a.size):
        bucket = slots[_find(slots, key1, key2, a[i], b[i])]
        begin[i] = starts[bucket] if bucket >= 0 else 0
        end[i] = starts[bucket + 1] if bucket >= 0 else 0


@helper
def _bound(values: I64s, lo: int, hi: int, value: int, after_equals: bool) -> int:
    """The first place in the sorted ``values[lo:hi]`` not below ``value``, or not at it either."""
    while lo < hi:
        mid = (lo + hi) // 2
        if values[mid] < value or (after_equals and values[mid] == value):
            lo = mid + 1
        else:
            hi = mid
    return lo


@kernel(ro(i64), i64, i64, i64, ro(i64), ro(i64), ro(i64), rw(i64), rw(i64))
def narrow(
    values: I64s, shift: int, is_upper: int, after_equals: int, wanted: I64s, lo: I64s, hi: I64s, begin: I64s, end: I64s
) -> None:
    """Cut each bucket ``lo[i]:hi[i]`` at ``wanted[i]``, and keep the cut where it is the shortest.

    ``values`` are sorted within each bucket and stand ``shift`` places further on in the entries;
    ``is_upper`` keeps the part after the cut, ``after_equals`` cuts after the equal values.
    """
    for i in range(lo.size):
        first, last = lo[i] + shift, hi[i] + shift
        cut = _bound(values, first, last, wanted[i], after_equals != 0)
        if is_upper != 0:
            first = cut
        else:
            last = cut
        if last - first < end[i] - begin[i]:
            begin[i], end[i] = first, last
