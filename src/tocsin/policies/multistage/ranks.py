"""Who is where, in the order of weight, so that members of a broker next to a wanted weight are found at once.

Subscribers that may move have a rank each, the heaviest the first. Every broker has the set of its members' ranks as
bits, with a second layer of bits that says which words are not empty: a move changes two bits, nothing is sorted again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.jit import f64, helper, i32, i64, inlined, kernel, ro, rw, u64
from tocsin.policies.multistage.terrain import NONE, Board, World, move

Array = Any

ONE, ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
RANKED = (ro(i64), ro(f64), rw(u64), rw(u64))


class Ranks(NamedTuple):
    """Subscribers in the order of rank, their weights, and the brokers' sets: ``layer`` words of summary each."""

    order: Array
    falling: Array
    words: Array
    summary: Array


@inlined
def layer(ranked: Ranks) -> int:
    """Words of summary for each broker; each sums up 64 words of 64 ranks."""
    return (len(ranked.order) >> 12) + 1


@helper
def _lowest(word: np.uint64) -> int:
    at = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word & ((ONE << np.uint64(shift)) - ONE) == 0:
            word = word >> np.uint64(shift)
            at += shift
    return at


@helper
def _highest(word: np.uint64) -> int:
    at = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if word >> np.uint64(shift) != 0:
            word = word >> np.uint64(shift)
            at += shift
    return at


@inlined
def _enter(j: int, rank: int, ranked: Ranks) -> None:
    above = j * layer(ranked)
    ranked.words[(above << 6) + (rank >> 6)] |= ONE << np.uint64(rank & 63)
    ranked.summary[above + (rank >> 12)] |= ONE << np.uint64((rank >> 6) & 63)


@inlined
def _leave(j: int, rank: int, ranked: Ranks) -> None:
    above = j * layer(ranked)
    at = (above << 6) + (rank >> 6)
    ranked.words[at] &= ~(ONE << np.uint64(rank & 63))
    if ranked.words[at] == 0:
        ranked.summary[above + (rank >> 12)] &= ~(ONE << np.uint64((rank >> 6) & 63))


@helper
def following(j: int, rank: int, ranked: Ranks) -> int:
    """The first rank of ``j`` from ``rank`` on, or as many as there are."""
    end, layers = len(ranked.order), layer(ranked)
    if rank >= end:
        return end
    above = j * layers
    base = above << 6
    word = ranked.words[base + (rank >> 6)] & (ALL << np.uint64(rank & 63))
    if word != 0:
        return (rank & ~63) + _lowest(word)
    at = (rank >> 6) + 1
    high = at >> 6
    if high >= layers:
        return end
    top = ranked.summary[above + high] & (ALL << np.uint64(at & 63))
    while top == 0:
        high += 1
        if high >= layers:
            return end
        top = ranked.summary[above + high]
    at = (high << 6) + _lowest(top)
    return (at << 6) + _lowest(ranked.words[base + at])


@helper
def preceding(j: int, rank: int, ranked: Ranks) -> int:
    """The last rank of ``j`` up to ``rank``, or -1."""
    if rank < 0:
        return NONE
    above = j * layer(ranked)
    base = above << 6
    word = ranked.words[base + (rank >> 6)] & (ALL >> np.uint64(63 - (rank & 63)))
    if word != 0:
        return (rank & ~63) + _highest(word)
    at = (rank >> 6) - 1
    if at < 0:
        return NONE
    high = at >> 6
    top = ranked.summary[above + high] & (ALL >> np.uint64(63 - (at & 63)))
    while top == 0:
        high -= 1
        if high < 0:
            return NONE
        top = ranked.summary[above + high]
    at = (high << 6) + _highest(top)
    return (at << 6) + _highest(ranked.words[base + at])


@helper
def first_lighter(falling: Array, weight: float) -> int:
    """The first rank whose weight is below ``weight``; weights fall with rank."""
    low, high = 0, len(falling)
    while low < high:
        middle = (low + high) >> 1
        if falling[middle] < weight:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def shift(rank: int, source: int, target: int, world: World, board: Board, ranked: Ranks) -> None:
    """Move whoever has this rank."""
    move(ranked.order[rank], source, target, world, board)
    _leave(source, rank, ranked)
    _enter(target, rank, ranked)


@kernel(*RANKED, ro(i32))
def mark(order: Array, falling: Array, words: Array, summary: Array, assigned: Array) -> None:
    """Fill empty sets of members."""
    ranked = Ranks(order, falling, words, summary)
    for rank in range(len(order)):
        _enter(assigned[order[rank]], rank, ranked)
