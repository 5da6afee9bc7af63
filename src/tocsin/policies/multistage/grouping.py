"""Kernel of GMOVE: groups of subscribers that share much leave a broker together.

Members of the source lie in a heap by what the system gains for each byte a second they are sent. Moving one changes
others' gain only where the target gets a subscription it had not, or the source is left with one holder of it, and
each happens once a group: so the heap is corrected in time proportional to what the source's members want.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from tocsin.jit import boolean, f64, helper, i32, i64, kernel, ro, rw

Array = Any

ROUNDING = 1e-12
NONE = cast("int", np.int64(-1))  # typed, or helpers would be compiled for the literal too
WORLD = (ro(i64), ro(i32), ro(f64), ro(f64), ro(f64))  # offsets, items, rates, weights, capacities
TARGETS = 3  # lightest brokers tried for each group


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
def _gather(b: int, d: int, price: float, world: World, board: Board, fixed: Array, queue: Heap) -> int:
    """Fill the heap with the movable members of ``b``; how many."""
    m, size = len(board.loads), 0
    for i in range(len(board.assigned)):
        queue.place[i] = -1
        if board.assigned[i] == b and not fixed[i] and world.weights[i] > 0:
            gain = -price
            for at in range(world.offsets[i], world.offsets[i + 1]):
                k = world.items[at]
                gain += world.rates[k] if board.counts[k * m + b] == 1 else 0.0
                gain -= world.rates[k] if board.counts[k * m + d] == 0 else 0.0
            queue.key[i] = gain / world.weights[i]
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
    m = len(board.loads)
    for back in range(went):
        i = group[went - 1 - back]
        board.assigned[i] = b
        for at in range(world.offsets[i], world.offsets[i + 1]):
            k = world.items[at]
            board.counts[k * m + d] -= 1
            board.loads[d] -= world.rates[k] if board.counts[k * m + d] > 0 else 2 * world.rates[k]
            board.loads[b] += world.rates[k] if board.counts[k * m + b] > 0 else 2 * world.rates[k]
            board.counts[k * m + b] += 1


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
    m, went = len(board.loads), 0
    level = board.loads[b] / world.capacities[b] * (1 - ROUNDING)
    goal = board.loads[b] - amount
    size = _gather(b, d, price, world, board, fixed, queue)
    while size > 0 and board.loads[b] > goal:
        i = queue.heap[0]
        queue.place[i] = -1
        size -= 1
        if size > 0:
            queue.heap[0] = queue.heap[size]
            queue.place[queue.heap[0]] = 0
            _down(queue, size, 0)
        more = world.weights[i]
        for at in range(world.offsets[i], world.offsets[i + 1]):
            more += world.rates[world.items[at]] if board.counts[world.items[at] * m + d] == 0 else 0.0
        if (board.loads[d] + more) / world.capacities[d] < level:
            _send(i, b, d, world, board, holding, queue)
            group[went] = i
            went += 1
    return went


@helper
def _mean_and_cov(loads: Array, capacities: Array) -> tuple[float, float]:
    whole, space = 0.0, 0.0
    for j in range(len(loads)):
        whole += loads[j]
        space += capacities[j]
    mean = whole / space
    if mean <= 0:
        return mean, 0.0
    squares = 0.0
    for j in range(len(loads)):
        squares += capacities[j] * (loads[j] / capacities[j] - mean) ** 2
    return mean, np.sqrt(squares / space) / mean


@helper
def _sort(order: Array, loads: Array, capacities: Array) -> None:
    """Brokers by level, lightest first, ties by number; nearly sorted already."""
    for at in range(1, len(order)):
        j = order[at]
        level, back = loads[j] / capacities[j], at - 1
        while back >= 0:
            other = loads[order[back]] / capacities[order[back]]
            if other < level or (other == level and order[back] < j):
                break
            order[back + 1] = order[back]
            back -= 1
        order[back + 1] = j


@kernel(*WORLD, rw(i32), rw(i32), rw(f64), ro(boolean), ro(i64), ro(i32), rw(i64), f64, f64)
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
        mean, cov = _mean_and_cov(loads, capacities)
        if cov <= until:
            break
        _sort(by_level, loads, capacities)
        b = by_level[m - 1]
        best, goes_to, sheds = np.inf, NONE, 0.0
        for at in range(min(TARGETS, m - 1)):
            d = by_level[at]
            amount = min(loads[b] - mean * capacities[b], mean * capacities[d] - loads[d])
            if amount <= 0:
                continue
            whole, heavy = loads[b] + loads[d], loads[b]
            went = _shed(b, d, amount, price, world, board, fixed, holding, queue, group)
            growth, shed = loads[b] + loads[d] - whole, heavy - loads[b]
            _return(group, went, b, d, world, board)
            if went > 0 and growth / shed < best:
                best, goes_to, sheds = growth / shed, d, amount
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
