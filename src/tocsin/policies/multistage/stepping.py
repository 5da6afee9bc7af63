"""Kernels that move one subscriber at a time: LDM, SDM and XBAL.

They share a board: counters and loads as in the load model, and per broker the set of its movable subscribers as bits
in the order of rank, heaviest first, with a second layer of bits that says which words are not empty. So the members
next to a wanted weight are found without sorting again, and a move changes two bits.

What ends them: every move makes the target end below the level where the source stood, by more than rounding, so the
sorted vector of levels falls lexicographically (LDM, SDM), or lowers the sum of the levels' powers by a stated least
(XBAL). ``limit`` stops what rounding might still keep alive.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from tocsin.jit import f64, helper, i32, i64, kernel, ro, rw, u64

Array = Any

REACHED, STUCK, TOO_MANY = 0, 1, 2
TO_LIGHTEST, TO_SIMILAR, BEST_FIT, SWAPPED = 0, 1, 2, 3  # why a step was made
OVER, EMPTY, POOR, SHUT = 0, 1, 2, 3  # why a candidate was refused
ROUNDING = 1e-12
NONE = cast("int", np.int64(-1))  # typed, or helpers would be compiled for the literal too
ONE, ALL = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)

WORLD = (ro(i64), ro(i32), ro(f64), ro(f64), ro(f64))  # offsets, items, rates, weights, capacities
BOARD = (rw(i32), rw(i32), rw(f64))  # assigned, counts, loads
RANKED = (ro(i64), ro(f64), rw(u64), rw(u64))  # ranked, its weights, words, summary
TOLD = (rw(i64), rw(i64), rw(i64))  # steps, why, refused


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


class Ranks(NamedTuple):
    """Subscribers by falling weight, and the sets of members over these ranks."""

    order: Array
    falling: Array
    words: Array
    summary: Array


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


@helper
def _set(words: Array, summary: Array, base: int, above: int, rank: int) -> None:
    words[base + (rank >> 6)] |= ONE << np.uint64(rank & 63)
    summary[above + (rank >> 12)] |= ONE << np.uint64((rank >> 6) & 63)


@helper
def _clear(words: Array, summary: Array, base: int, above: int, rank: int) -> None:
    words[base + (rank >> 6)] &= ~(ONE << np.uint64(rank & 63))
    if words[base + (rank >> 6)] == 0:
        summary[above + (rank >> 12)] &= ~(ONE << np.uint64((rank >> 6) & 63))


@helper
def _following(words: Array, summary: Array, base: int, above: int, layer: int, rank: int, end: int) -> int:
    """The first rank set from ``rank`` on, or ``end``."""
    if rank >= end:
        return end
    word = words[base + (rank >> 6)] & (ALL << np.uint64(rank & 63))
    if word != 0:
        return (rank & ~63) + _lowest(word)
    at = (rank >> 6) + 1
    if at >> 6 >= layer:
        return end
    top = summary[above + (at >> 6)] & (ALL << np.uint64(at & 63))
    high = at >> 6
    while top == 0:
        high += 1
        if high >= layer:
            return end
        top = summary[above + high]
    at = (high << 6) + _lowest(top)
    return (at << 6) + _lowest(words[base + at])


@helper
def _preceding(words: Array, summary: Array, base: int, above: int, rank: int) -> int:
    """The last rank set up to ``rank``, or -1."""
    if rank < 0:
        return NONE
    word = words[base + (rank >> 6)] & (ALL >> np.uint64(63 - (rank & 63)))
    if word != 0:
        return (rank & ~63) + _highest(word)
    at = (rank >> 6) - 1
    if at < 0:
        return NONE
    high = at >> 6
    top = summary[above + high] & (ALL >> np.uint64(63 - (at & 63)))
    while top == 0:
        high -= 1
        if high < 0:
            return NONE
        top = summary[above + high]
    at = (high << 6) + _highest(top)
    return (at << 6) + _highest(words[base + at])


@helper
def _first_lighter(falling: Array, weight: float) -> int:
    """The first rank whose weight is below ``weight``; weights fall with rank."""
    low, high = 0, len(falling)
    while low < high:
        middle = (low + high) >> 1
        if falling[middle] < weight:
            high = middle
        else:
            low = middle + 1
    return low


@helper
def _relief(i: int, j: int, world: World, board: Board) -> float:
    """Fetched at ``j`` for ``i`` alone."""
    total, m = 0.0, len(board.loads)
    for at in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[at]
        if board.counts[k * m + j] == 1:
            total += world.rates[k]
    return total


@helper
def _burden(i: int, j: int, world: World, board: Board) -> float:
    """Wanted by ``i`` and not fetched at ``j`` yet."""
    total, m = 0.0, len(board.loads)
    for at in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[at]
        if board.counts[k * m + j] == 0:
            total += world.rates[k]
    return total


@helper
def _shift(rank: int, source: int, target: int, world: World, board: Board, ranked: Ranks) -> None:
    """Move whoever has this rank."""
    m, i = len(board.loads), ranked.order[rank]
    for at in range(world.offsets[i], world.offsets[i + 1]):
        k = world.items[at]
        board.counts[k * m + source] -= 1
        board.loads[source] -= world.rates[k] if board.counts[k * m + source] > 0 else 2 * world.rates[k]
        board.loads[target] += world.rates[k] if board.counts[k * m + target] > 0 else 2 * world.rates[k]
        board.counts[k * m + target] += 1
    board.assigned[i] = target
    width, layer = len(ranked.words) // m, len(ranked.summary) // m
    _clear(ranked.words, ranked.summary, source * width, source * layer, rank)
    _set(ranked.words, ranked.summary, target * width, target * layer, rank)


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


@kernel(ro(i64), ro(i32), i64, rw(u64), rw(u64))
def mark(order: Array, assigned: Array, m: int, words: Array, summary: Array) -> None:
    """Fill empty sets of members."""
    width, layer = len(words) // m, len(summary) // m
    for rank in range(len(order)):
        j = assigned[order[rank]]
        _set(words, summary, j * width, j * layer, rank)


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
    """Algorithm 1, lines 5 to 24: LDM (``mode`` 0) or SDM (1). How it ended, and after how many steps.

    From the heaviest broker above the mean, or the next such one: its members from the heaviest on; the first with a
    valid target goes. Whoever alone outweighs the room of every target is passed over by a search in the ranks.
    """
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    ranked = Ranks(order, falling, words, summary)
    m, end = len(loads), len(order)
    width, layer = len(words) // m, len(summary) // m
    by_level = np.arange(m)
    similar = np.zeros(m)
    for done in range(len(steps)):
        mean, cov = _mean_and_cov(loads, capacities)
        if cov <= until:
            return REACHED, done
        _sort(by_level, loads, capacities)
        chosen, goes_to, source = NONE, NONE, NONE
        for heavy in range(m - 1, 0, -1):
            source = by_level[heavy]
            level = loads[source] / capacities[source] * (1 - ROUNDING)
            if level <= mean:
                break
            targets = 1
            if mode == 1:
                targets = 0
                while targets < heavy and loads[by_level[targets]] / capacities[by_level[targets]] < accept * mean:
                    targets += 1
                if targets == 0:
                    refused[SHUT] += 1
                    continue
            room = 0.0
            for at in range(targets):
                room = max(room, level * capacities[by_level[at]] - loads[by_level[at]])
            rank = _first_lighter(falling, room)
            while True:
                rank = _following(words, summary, source * width, source * layer, layer, rank, end)
                if rank >= end:
                    break
                i = order[rank]
                if weights[i] <= 0:
                    refused[EMPTY] += 1
                    break
                best = -1.0
                if mode == 1:
                    for at in range(targets):
                        similar[at] = 0.0
                    for item in range(offsets[i], offsets[i + 1]):
                        k = items[item]
                        for at in range(targets):
                            if counts[k * m + by_level[at]] > 0:
                                similar[at] += rates[k]
                else:
                    similar[0] = weights[i] - _burden(i, by_level[0], world, board)
                for at in range(targets):
                    j = by_level[at]
                    if (loads[j] + 2 * weights[i] - similar[at]) / capacities[j] < level and similar[at] > best:
                        best, goes_to = similar[at], j
                if best >= 0:
                    chosen = rank
                    break
                refused[OVER] += 1
                rank += 1
            if chosen >= 0:
                break
        if chosen < 0:
            return STUCK, done
        _shift(chosen, source, goes_to, world, board, ranked)
        steps[done], why[done] = order[chosen], TO_SIMILAR if mode == 1 else TO_LIGHTEST
    return TOO_MANY, len(steps)


@helper
def _swap_loads(i: int, other: int, b: int, d: int, world: World, board: Board) -> tuple[float, float]:
    """Loads of ``b`` and ``d`` once ``i`` of ``b`` and ``other`` of ``d`` have changed places; rows are in order."""
    m = len(board.loads)
    at_b = board.loads[b] - world.weights[i] + world.weights[other]
    at_d = board.loads[d] + world.weights[i] - world.weights[other]
    one, two = world.offsets[i], world.offsets[other]
    while one < world.offsets[i + 1] or two < world.offsets[other + 1]:
        k = world.items[one] if one < world.offsets[i + 1] else np.int32(0x7FFFFFFF)
        h = world.items[two] if two < world.offsets[other + 1] else np.int32(0x7FFFFFFF)
        if k == h:
            one, two = one + 1, two + 1
        elif k < h:
            at_b -= world.rates[k] if board.counts[k * m + b] == 1 else 0.0
            at_d += world.rates[k] if board.counts[k * m + d] == 0 else 0.0
            one += 1
        else:
            at_d -= world.rates[h] if board.counts[h * m + d] == 1 else 0.0
            at_b += world.rates[h] if board.counts[h * m + b] == 0 else 0.0
            two += 1
    return at_b, at_d


@helper
def _best_single(
    b: int, d: int, top: float, power: int, reach: int, world: World, board: Board, ranked: Ranks, refused: Array
) -> tuple[float, int]:
    """The member of ``b`` with a weight near the ideal that gains most at ``d``: gain and rank."""
    m, end = len(board.loads), len(ranked.order)
    width, layer = len(ranked.words) // m, len(ranked.summary) // m
    level, lower = board.loads[b] / world.capacities[b], board.loads[d] / world.capacities[d]
    ideal = (level - lower) / (1 / world.capacities[b] + 1 / world.capacities[d])
    before = world.capacities[b] * (level / top) ** power + world.capacities[d] * (lower / top) ** power
    best, found = 0.0, NONE
    middle = _first_lighter(ranked.falling, ideal)
    for side in range(2):
        rank = middle if side == 0 else middle - 1
        for _ in range(reach):
            if side == 0:
                rank = _following(ranked.words, ranked.summary, b * width, b * layer, layer, rank, end)
            else:
                rank = _preceding(ranked.words, ranked.summary, b * width, b * layer, rank)
            if rank < 0 or rank >= end or ranked.falling[rank] <= 0:
                break
            i = ranked.order[rank]
            if (board.loads[d] + world.weights[i]) / world.capacities[d] >= level * (1 - ROUNDING):
                refused[OVER] += 1
                break
            new = board.loads[d] + world.weights[i] + _burden(i, d, world, board)
            if new / world.capacities[d] >= level * (1 - ROUNDING):
                refused[OVER] += 1
            else:
                left = board.loads[b] - world.weights[i] - _relief(i, b, world, board)
                after = world.capacities[b] * (left / world.capacities[b] / top) ** power
                gain = before - after - world.capacities[d] * (new / world.capacities[d] / top) ** power
                if gain > best:
                    best, found = gain, rank
            rank += 1 if side == 0 else -1
    return best, found


@helper
def _best_swap(
    b: int, d: int, top: float, power: int, tries: int, world: World, board: Board, ranked: Ranks
) -> tuple[float, int, int]:
    """A member of ``b`` and one of ``d`` lighter by about the ideal that gain most by changing places."""
    m, end = len(board.loads), len(ranked.order)
    width, layer = len(ranked.words) // m, len(ranked.summary) // m
    level, lower = board.loads[b] / world.capacities[b], board.loads[d] / world.capacities[d]
    ideal = (level - lower) / (1 / world.capacities[b] + 1 / world.capacities[d])
    before = world.capacities[b] * (level / top) ** power + world.capacities[d] * (lower / top) ** power
    best, found, other = 0.0, NONE, NONE
    rank = NONE
    for turn in range(min(tries, end)):
        rank = _following(
            ranked.words, ranked.summary, b * width, b * layer, layer, max(rank + 1, turn * end // tries), end
        )
        if rank >= end or ranked.falling[rank] <= 0:
            break
        back = _first_lighter(ranked.falling, ranked.falling[rank] - ideal)
        ahead, behind = back, back - 1
        for side in range(4):
            if side & 1 == 0:
                pair = _following(ranked.words, ranked.summary, d * width, d * layer, layer, ahead, end)
                ahead = pair + 1
            else:
                pair = _preceding(ranked.words, ranked.summary, d * width, d * layer, behind)
                behind = pair - 1
            if pair < 0 or pair >= end:
                continue
            left, new = _swap_loads(ranked.order[rank], ranked.order[pair], b, d, world, board)
            if max(left / world.capacities[b], new / world.capacities[d]) < level * (1 - ROUNDING):
                after = world.capacities[b] * (left / world.capacities[b] / top) ** power
                gain = before - after - world.capacities[d] * (new / world.capacities[d] / top) ** power
                if gain > best:
                    best, found, other = gain, rank, pair
    return best, found, other


@kernel(*WORLD, *BOARD, *RANKED, *TOLD, f64, i64, i64, i64, f64, f64)
def repair(
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
    power: int,
    reach: int,
    lightest: int,
    bulk: float,
    least_gain: float,
) -> tuple[int, int]:
    """XBAL: the best single move off the heaviest broker, else the best swap, else the next broker."""
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    ranked = Ranks(order, falling, words, summary)
    m, done = len(loads), 0
    by_level = np.arange(m)
    heaviest = falling[0] if len(falling) else 0.0
    while done + 2 <= len(steps):
        mean, cov = _mean_and_cov(loads, capacities)
        if cov <= until:
            return REACHED, done
        _sort(by_level, loads, capacities)
        top = loads[by_level[m - 1]] / capacities[by_level[m - 1]]
        gap = top - loads[by_level[0]] / capacities[by_level[0]]
        bulky = gap * capacities[by_level[m - 1]] / 2 > bulk * heaviest
        near, far = (min(4, reach), min(3, lightest)) if bulky else (reach, lightest)
        moved = False
        for heavy in range(m - 1, 0, -1):
            b = by_level[heavy]
            if loads[b] / capacities[b] <= mean:
                break
            best, chosen, target, other = least_gain, NONE, NONE, NONE
            for at in range(min(far, heavy)):
                gain, rank = _best_single(b, by_level[at], top, power, near, world, board, ranked, refused)
                if gain > best:
                    best, chosen, target = gain, rank, by_level[at]
            if chosen < 0:
                for at in range(min(4, heavy)):
                    gain, rank, back = _best_swap(b, by_level[at], top, power, 4 * reach, world, board, ranked)
                    if gain > best:
                        best, chosen, target, other = gain, rank, by_level[at], back
            if chosen >= 0:
                _shift(chosen, b, target, world, board, ranked)
                steps[done], why[done] = order[chosen], BEST_FIT if other < 0 else SWAPPED
                done += 1
                if other >= 0:
                    _shift(other, target, b, world, board, ranked)
                    steps[done], why[done] = order[other], SWAPPED
                    done += 1
                moved = True
                break
            refused[POOR] += 1
        if not moved:
            return STUCK, done
    return TOO_MANY, done
