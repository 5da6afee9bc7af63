"""What kernels work on and have in common: what does not change, what a move changes, and how levels lie.

A level is a broker's load by its capacity. ``jit`` tells numba's cache of changes of any file here, so that these
helpers can be shared by the kernels of several.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from tocsin.jit import f64, helper, i32, i64, inlined, ro, rw

Array = Any

ROUNDING = 1e-12
NONE = cast("int", np.int64(-1))  # typed, or helpers would be compiled for the literal too
NOBODY, ONE = cast("int", np.int64(0)), cast("int", np.int64(1))
WORLD = (ro(i64), ro(i32), ro(f64), ro(f64), ro(f64))
BOARD = (rw(i32), rw(i32), rw(f64))


class World(NamedTuple):
    """What does not change."""

    offsets: Array
    items: Array
    rates: Array
    weights: Array
    capacities: Array


class Board(NamedTuple):
    """What every move changes."""

    assigned: Array
    counts: Array
    loads: Array


@inlined
def hand_over(
    i: int, source: int, target: int, offsets: Array, items: Array, rates: Array, counts: Array, loads: Array
) -> None:
    """What ``i`` is sent goes along, and what its brokers fetch for nobody else falls away or is added."""
    m = len(loads)
    for at in range(offsets[i], offsets[i + 1]):
        k = items[at]
        counts[k * m + source] -= 1
        loads[source] -= rates[k] if counts[k * m + source] > 0 else 2 * rates[k]
        loads[target] += rates[k] if counts[k * m + target] > 0 else 2 * rates[k]
        counts[k * m + target] += 1


@inlined
def move(i: int, source: int, target: int, world: World, board: Board) -> None:
    hand_over(i, source, target, world.offsets, world.items, world.rates, board.counts, board.loads)
    board.assigned[i] = target


@inlined
def _held_by(holders: int, i: int, j: int, world: World, board: Board) -> float:
    """The rates of what ``i`` wants and ``holders`` subscribers of ``j`` have."""
    total, m = 0.0, len(board.loads)
    for at in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[at]
        if board.counts[k * m + j] == holders:
            total += world.rates[k]
    return total


@inlined
def relief(i: int, j: int, world: World, board: Board) -> float:
    """Fetched at ``j`` for ``i`` alone."""
    return _held_by(ONE, i, j, world, board)


@inlined
def burden(i: int, j: int, world: World, board: Board) -> float:
    """Wanted by ``i`` and not fetched at ``j`` yet."""
    return _held_by(NOBODY, i, j, world, board)


@inlined
def level(j: int, world: World, board: Board) -> float:
    height: float = board.loads[j] / world.capacities[j]
    return height


@helper
def mean_and_cov(world: World, board: Board) -> tuple[float, float]:
    """Of the levels, weighted by capacity."""
    whole, space = 0.0, 0.0
    for j in range(len(board.loads)):
        whole += board.loads[j]
        space += world.capacities[j]
    mean = whole / space
    if mean <= 0:
        return mean, 0.0
    squares = 0.0
    for j in range(len(board.loads)):
        squares += world.capacities[j] * (level(j, world, board) - mean) ** 2
    return mean, np.sqrt(squares / space) / mean


@helper
def sort_by_level(order: Array, world: World, board: Board) -> None:
    """Brokers, lightest first, ties by number; nearly sorted already."""
    for at in range(1, len(order)):
        j = order[at]
        here, back = level(j, world, board), at - 1
        while back >= 0:
            other = level(order[back], world, board)
            if other < here or (other == here and order[back] < j):
                break
            order[back + 1] = order[back]
            back -= 1
        order[back + 1] = j
