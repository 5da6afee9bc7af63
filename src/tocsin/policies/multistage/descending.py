"""Kernel of LDM and SDM: Algorithm 1, lines 5 to 24."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.jit import f64, helper, i64, inlined, kernel
from tocsin.policies.multistage.ranks import RANKED, Ranks, first_lighter, following, shift
from tocsin.policies.multistage.stepping import (
    EMPTY,
    OVER,
    REACHED,
    SHUT,
    STUCK,
    TO_LIGHTEST,
    TO_SIMILAR,
    TOLD,
    TOO_MANY,
)
from tocsin.policies.multistage.terrain import (
    BOARD,
    NONE,
    ROUNDING,
    WORLD,
    Board,
    World,
    level,
    mean_and_cov,
    sort_by_level,
)

Array = Any

LDM, SDM = 0, 1


@helper
def _accepting(below: float, heavy: int, by_level: Array, world: World, board: Board) -> int:
    """How many brokers, of those lighter than the one at ``heavy``, have a level below that."""
    count = 0
    while count < heavy and level(by_level[count], world, board) < below:
        count += 1
    return count


@inlined
def _room(height: float, targets: Array, world: World, board: Board) -> float:
    """Whoever weighs more than this would lift every target to ``height``."""
    room = 0.0
    for j in targets:
        room = max(room, height * world.capacities[j] - board.loads[j])
    return room


@inlined
def _share(i: int, targets: Array, shared: Array, world: World, board: Board) -> None:
    """The rates of what ``i`` wants and each target has."""
    m = len(board.loads)
    for at in range(len(targets)):
        shared[at] = 0.0
    for item in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[item]
        for at in range(len(targets)):
            if board.counts[k * m + targets[at]] > 0:
                shared[at] += world.rates[k]


@inlined
def _most_similar(i: int, height: float, targets: Array, shared: Array, world: World, board: Board) -> int:
    """The target that shares most with ``i``, of those that would stay below ``height``, or -1."""
    best, found = -1.0, NONE
    for at in range(len(targets)):
        j = targets[at]
        after = board.loads[j] + 2 * world.weights[i] - shared[at]
        if after / world.capacities[j] < height and shared[at] > best:
            best, found = shared[at], j
    return found


@inlined
def _first_to_go(
    source: int, height: float, targets: Array, shared: Array, world: World, board: Board, ranked: Ranks, refused: Array
) -> tuple[int, int]:
    """The heaviest member of ``source`` that has a valid target: its rank and the target, or -1 twice."""
    rank = following(source, first_lighter(ranked.falling, _room(height, targets, world, board)), ranked)
    while rank < len(ranked.order):
        i = ranked.order[rank]
        if world.weights[i] <= 0:
            refused[EMPTY] += 1
            break
        _share(i, targets, shared, world, board)
        target = _most_similar(i, height, targets, shared, world, board)
        if target >= 0:
            return rank, target
        refused[OVER] += 1
        rank = following(source, rank + 1, ranked)
    return NONE, NONE


@helper
def _next(
    mode: int,
    mean: float,
    accept: float,
    by_level: Array,
    shared: Array,
    world: World,
    board: Board,
    ranked: Ranks,
    refused: Array,
) -> tuple[int, int, int]:
    """Off the heaviest broker above the mean, or the next such one: rank, source and target, or -1 thrice."""
    for heavy in range(len(by_level) - 1, 0, -1):
        source = by_level[heavy]
        height = level(source, world, board) * (1 - ROUNDING)
        if height <= mean:
            break
        count = 1 if mode == LDM else _accepting(accept * mean, heavy, by_level, world, board)
        if count == 0:
            refused[SHUT] += 1
            continue
        rank, target = _first_to_go(source, height, by_level[:count], shared, world, board, ranked, refused)
        if rank >= 0:
            return rank, source, target
    return NONE, NONE, NONE


@kernel(*WORLD, *BOARD, *RANKED, *TOLD, f64, f64, i64)
def descend(
    offsets: Array,
    items: Array,
    rates: Array,
    weights: Array,
    capacities: Array,
    assigned: Array,
    counts: Array,
    loads: Array,
    order: Array,
    falling: Array,
    words: Array,
    summary: Array,
    steps: Array,
    why: Array,
    refused: Array,
    until: float,
    accept: float,
    mode: int,
) -> tuple[int, int]:
    """Steps until cov is down at ``until``: how it ended, and after how many.

    Whoever alone outweighs the room of every target is passed over by a search in the ranks.
    """
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    ranked = Ranks(order, falling, words, summary)
    by_level, shared = np.arange(len(loads)), np.zeros(len(loads))
    for done in range(len(steps)):
        mean, cov = mean_and_cov(world, board)
        if cov <= until:
            return REACHED, done
        sort_by_level(by_level, world, board)
        rank, source, target = _next(mode, mean, accept, by_level, shared, world, board, ranked, refused)
        if rank < 0:
            return STUCK, done
        shift(rank, source, target, world, board, ranked)
        steps[done], why[done] = order[rank], TO_SIMILAR if mode == SDM else TO_LIGHTEST
    return TOO_MANY, len(steps)
