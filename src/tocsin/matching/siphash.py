"""128-bit keyed hashes: SipHash-2-4 with 128 bits of output, over strings and over tuples of words.

The key (``seed``) is drawn at random when an index is first built and kept in it, so that nobody who
writes subscriptions or records can prepare values that collide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.jit import helper, i32, i64, kernel, ro, rw, u8, u64

Lanes = tuple[NDArray[np.uint64], NDArray[np.uint64]]

_C0, _C1 = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_C2, _C3 = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_WIDE, _SECOND = np.uint64(0xEE), np.uint64(0xDD)
_R13, _R16, _R17, _R21, _R32 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21), np.uint64(32)
_BITS, _TOP, _BYTE, _ZERO = np.uint64(64), np.uint64(56), np.uint64(8), np.uint64(0)

State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@helper
def _rotate(value: np.uint64, bits: np.uint64) -> np.uint64:
    return (value << bits) | (value >> (_BITS - bits))


@helper
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> State:
    v0 = v0 + v1
    v1 = _rotate(v1, _R13) ^ v0
    v0 = _rotate(v0, _R32)
    v2 = v2 + v3
    v3 = _rotate(v3, _R16) ^ v2
    v0 = v0 + v3
    v3 = _rotate(v3, _R21) ^ v0
    v2 = v2 + v1
    v1 = _rotate(v1, _R17) ^ v2
    v2 = _rotate(v2, _R32)
    return v0, v1, v2, v3


@helper
def _start(k0: np.uint64, k1: np.uint64) -> State:
    return k0 ^ _C0, k1 ^ _C1 ^ _WIDE, k0 ^ _C2, k1 ^ _C3


@helper
def _absorb(state: State, word: np.uint64) -> State:
    v0, v1, v2, v3 = state
    v3 = v3 ^ word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@helper
def _finish(state: State) -> tuple[np.uint64, np.uint64]:
    v0, v1, v2, v3 = state
    v2 = v2 ^ _WIDE
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 = v1 ^ _SECOND
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@kernel(ro(u8), ro(i64), u64, u64, rw(u64), rw(u64))
def hash_strings(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    k0: np.uint64,
    k1: np.uint64,
    out1: NDArray[np.uint64],
    out2: NDArray[np.uint64],
) -> None:
    """Hash the bytes ``offsets[i]:offsets[i + 1]`` for each i."""
    for i in range(out1.size):
        begin, end = offsets[i], offsets[i + 1]
        state = _start(k0, k1)
        at = begin
        while at + 8 <= end:
            word = _ZERO
            for b in range(8):
                word |= np.uint64(data[at + b]) << np.uint64(8 * b)
            state = _absorb(state, word)
            at += 8
        word = np.uint64(end - begin) << _TOP
        for b in range(end - at):
            word |= np.uint64(data[at + b]) << np.uint64(8 * b)
        out1[i], out2[i] = _finish(_absorb(state, word))


@kernel(ro(i32), ro(u64), ro(u64), ro(u64), ro(u64), u64, u64, rw(u64), rw(u64))
def fold_pairs(
    owner: NDArray[np.int32],
    head1: NDArray[np.uint64],
    head2: NDArray[np.uint64],
    lane1: NDArray[np.uint64],
    lane2: NDArray[np.uint64],
    k0: np.uint64,
    k1: np.uint64,
    out1: NDArray[np.uint64],
    out2: NDArray[np.uint64],
) -> None:
    """Hash the four words head[owner[i]] and lane[i] for each i."""
    for i in range(owner.size):
        o = owner[i]
        state = _absorb(_absorb(_start(k0, k1), head1[o]), head2[o])
        state = _absorb(_absorb(state, lane1[i]), lane2[i])
        out1[i], out2[i] = _finish(_absorb(state, np.uint64(32) << _TOP))


@kernel(ro(i32), ro(u64), ro(u64), ro(i32), ro(i64), ro(i64), ro(i64), u64, u64, rw(u64), rw(u64))
def fold_cells(
    owner: NDArray[np.int32],
    head1: NDArray[np.uint64],
    head2: NDArray[np.uint64],
    level: NDArray[np.int32],
    cx: NDArray[np.int64],
    cy: NDArray[np.int64],
    cz: NDArray[np.int64],
    k0: np.uint64,
    k1: np.uint64,
    out1: NDArray[np.uint64],
    out2: NDArray[np.uint64],
) -> None:
    """Hash head[owner[i]], the level and the cell for each i. An empty ``cz`` means a planar cell."""
    is_flat = cz.size == 0
    for i in range(owner.size):
        o = owner[i]
        state = _absorb(_absorb(_start(k0, k1), head1[o]), head2[o])
        state = _absorb(_absorb(state, np.uint64(np.int64(level[i]))), np.uint64(cx[i]))
        state = _absorb(state, np.uint64(cy[i]))
        if not is_flat:
            state = _absorb(state, np.uint64(cz[i]))
        out1[i], out2[i] = _finish(_absorb(state, np.uint64(48) << _TOP))


def empty_lanes(n: int) -> Lanes:
    return np.empty(n, np.uint64), np.empty(n, np.uint64)
