"""Kernel of GMOVE: groups of subscribers that share much leave a broker together.

Members of the source lie in a heap by what the system gains for each byte a second they are sent. Moving one changes
others' gain only where the target gets a subscription it had not, or the source is left with one holder of it, and
each happens once a group: so the heap is corrected in time proportional to what the source's members want.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.jit import boolean, f64, helper, i32, i64, kernel, ro, rw
from tocsin.policies.multistage.terrain import (
    BOARD,
    NONE,
    ROUNDING,
    WORLD,
    Board,
    World,
    burden,
    level,
    mean_and_cov,
    move,
    relief,
    sort_by_level,
)

Array = Any

TARGETS = 3  # lightest brokers tried for each group


class Holders(NamedTuple):
    """Who wants each backend subscription."""

    starts: Array
    holders: Array


class Heap(NamedTuple):
    """Subscribers, the best first; the place of each in it, or -1; and each one's key."""

    heap: Array
    place: Array
    key: Array


@helper
def _up(queue: Heap, at: int) -> None:
    i = queue.heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if queue.key[queue.heap[parent]] >= queue.key[i]:
            break
        queue.heap[at] = queue.heap[parent]
        queue.place[queue.heap[at]] = at
        at = parent
    queue.heap[at] = i
    queue.place[i] = at


@helper
def _down(queue: Heap, size: int, at: int) -> None:
    i = queue.heap[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and queue.key[queue.heap[child + 1]] > queue.key[queue.heap[child]]:
            child += 1
        if queue.key[i] >= queue.key[queue.heap[child]]:
            break
        queue.heap[at] = queue.heap[child]
        queue.place[queue.heap[at]] = at
        at = child
    queue.heap[at] = i
    queue.place[i] = at


@helper
def _pop(queue: Heap, left: int) -> int:
    """The best, of one more than ``left``."""
    i: int = queue.heap[0]
    queue.place[i] = -1
    if left > 0:
        queue.heap[0] = queue.heap[left]
        queue.place[queue.heap[0]] = 0
        _down(queue, left, 0)
    return i


@helper
def _gather(b: int, d: int, price: float, world: World, board: Board, fixed: Array, queue: Heap) -> int:
    """Fill the heap with the movable members of ``b``; how many."""
    size = 0
    for i in range(len(board.assigned)):
        queue.place[i] = -1
        if board.assigned[i] == b and not fixed[i] and world.weights[i] > 0:
            gain = relief(i, b, world, board) - burden(i, d, world, board)
            queue.key[i] = (gain - price) / world.weights[i]
            queue.heap[size], queue.place[i] = i, size
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _down(queue, size, at)
    return size


@helper
def _send(i: int, b: int, d: int, world: World, board: Board, holding: Holders, queue: Heap) -> None:
    """Move ``i``, and raise the keys of those at ``b`` who now gain more by going along."""
    m = len(board.loads)
    board.assigned[i] = d
    for at in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[at]
        board.counts[k * m + b] -= 1
        board.loads[b] -= world.rates[k] if board.counts[k * m + b] > 0 else 2 * world.rates[k]
        board.loads[d] += world.rates[k] if board.counts[k * m + d] > 0 else 2 * world.rates[k]
        board.counts[k * m + d] += 1
        raised = (1 if board.counts[k * m + d] == 1 else 0) + (1 if board.counts[k * m + b] == 1 else 0)
        if raised == 0 or board.counts[k * m + b] == 0:
            continue
        for other in range(holding.starts[k], holding.starts[k + 1]):
            h = holding.holders[other]
            if board.assigned[h] == b and queue.place[h] >= 0:
                queue.key[h] += raised * world.rates[k] / world.weights[h]
                _up(queue, queue.place[h])


@helper
def _return(group: Array, went: int, b: int, d: int, world: World, board: Board) -> None:
    """Undo: a group goes back from ``d`` to ``b``."""
    for back in range(went):
        move(group[went - 1 - back], d, b, world, board)


@helper
def _shed(
    b: int,
    d: int,
    amount: float,
    price: float,
    world: World,
    board: Board,
    fixed: Array,
    holding: Holders,
    queue: Heap,
    group: Array,
) -> int:
    """Move members from ``b`` to ``d``, best first, until ``amount`` has left; who went is in ``group``."""
    went, goal = 0, board.loads[b] - amount
    height = level(b, world, board) * (1 - ROUNDING)
    size = _gather(b, d, price, world, board, fixed, queue)
    while size > 0 and board.loads[b] > goal:
        size -= 1
        i = _pop(queue, size)
        more = world.weights[i] + burden(i, d, world, board)
        if (board.loads[d] + more) / world.capacities[d] < height:
            _send(i, b, d, world, board, holding, queue)
            group[went] = i
            went += 1
    return went


@helper
def _dearness(
    b: int,
    d: int,
    amount: float,
    price: float,
    world: World,
    board: Board,
    fixed: Array,
    holding: Holders,
    queue: Heap,
    group: Array,
) -> float:
    """How much the total would grow for each byte a second that leaves ``b`` for ``d``; infinite where nobody goes."""
    whole, heavy = board.loads[b] + board.loads[d], board.loads[b]
    went = _shed(b, d, amount, price, world, board, fixed, holding, queue, group)
    growth, shed = board.loads[b] + board.loads[d] - whole, heavy - board.loads[b]
    _return(group, went, b, d, world, board)
    return growth / shed if went > 0 else np.inf


@kernel(*WORLD, *BOARD, ro(boolean), ro(i64), ro(i32), rw(i64), f64, f64)
def regroup(
    offsets: Array,
    items: Array,
    rates: Array,
    weights: Array,
    capacities: Array,
    assigned: Array,
    counts: Array,
    loads: Array,
    fixed: Array,
    starts: Array,
    holders: Array,
    steps: Array,
    until: float,
    price: float,
) -> int:
    """Groups off the heaviest broker, each to the one of the lightest where the total grows least; how many moved.

    A group ends when its source is down at the mean or its target up at it, so a few for each broker are enough.
    """
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    holding = Holders(starts, holders)
    n, m, done = len(assigned), len(loads), 0
    queue, group = Heap(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)), np.empty(n, np.int64)
    by_level = np.arange(m)
    for _ in range(4 * m):
        mean, cov = mean_and_cov(world, board)
        if cov <= until:
            break
        sort_by_level(by_level, world, board)
        b = by_level[m - 1]
        best, goes_to, sheds = np.inf, NONE, 0.0
        for d in by_level[: min(TARGETS, m - 1)]:
            amount = min(loads[b] - mean * capacities[b], mean * capacities[d] - loads[d])
            if amount > 0:
                dear = _dearness(b, d, amount, price, world, board, fixed, holding, queue, group)
                if dear < best:
                    best, goes_to, sheds = dear, d, amount
        if goes_to < 0:
            break
        went = _shed(b, goes_to, sheds, price, world, board, fixed, holding, queue, group)
        if done + went > len(steps):
            _return(group, went, b, goes_to, world, board)
            break
        for at in range(went):
            steps[done + at] = group[at]
        done += went
    return done
