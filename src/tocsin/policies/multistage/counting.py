"""Kernels of the load model: weights, counters and loads of an assignment, one move.

The counters n_jk of equation 3 lie by backend subscription and then by broker, ``counts[k * m + j]``: a shuffle asks
for one ``k`` at every ``j``.
"""

from __future__ import annotations

from typing import Any

from tocsin.jit import f64, i32, i64, kernel, ro, rw
from tocsin.policies.multistage.terrain import BOARD, WORLD, Board, World, hand_over, mean_and_cov, move

Array = Any

SEEN = 6


@kernel(ro(i64), ro(i32), ro(f64), rw(f64))
def weigh(offsets: Array, items: Array, rates: Array, weights: Array) -> None:
    """u_i, the sum of the rates of what ``i`` wants (line 8 of Algorithm 1)."""
    for i in range(len(weights)):
        total = 0.0
        for at in range(offsets[i], offsets[i + 1]):
            total += rates[items[at]]
        weights[i] = total


@kernel(ro(i64), ro(i32), ro(f64), ro(i32), rw(i32), rw(f64))
def count(offsets: Array, items: Array, rates: Array, assigned: Array, counts: Array, loads: Array) -> None:
    """Fill empty counters, and loads by equation 5. Whoever is nowhere (-1) does not count."""
    m = len(loads)
    for i in range(len(assigned)):
        j = assigned[i]
        if j >= 0:
            for at in range(offsets[i], offsets[i + 1]):
                counts[items[at] * m + j] += 1
    for k in range(len(rates)):
        for j in range(m):
            held = counts[k * m + j]
            if held > 0:
                loads[j] += (1 + held) * rates[k]


@kernel(i64, i64, i64, ro(i64), ro(i32), ro(f64), rw(i32), rw(f64))
def transfer(
    i: int, source: int, target: int, offsets: Array, items: Array, rates: Array, counts: Array, loads: Array
) -> None:
    """Move one."""
    hand_over(i, source, target, offsets, items, rates, counts, loads)


@kernel(ro(i64), ro(i64), *WORLD, *BOARD, rw(f64))
def replay(
    order: Array,
    targets: Array,
    offsets: Array,
    items: Array,
    rates: Array,
    weights: Array,
    capacities: Array,
    assigned: Array,
    counts: Array,
    loads: Array,
    seen: Array,
) -> None:
    """Move each of ``order``, once, and write ``SEEN`` numbers for each: loads of source and target before, the same
    after, the highest level and cov then."""
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    for step in range(len(order)):
        i, target, row = order[step], targets[step], SEEN * step
        source = assigned[i]
        seen[row], seen[row + 1] = loads[source], loads[target]
        move(i, source, target, world, board)
        seen[row + 2], seen[row + 3] = loads[source], loads[target]
        seen[row + 4], seen[row + 5] = (loads / capacities).max(), mean_and_cov(world, board)[1]
