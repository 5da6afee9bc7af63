"""Kernel of XBAL: the best single move off the heaviest broker, else the best swap, else the next broker."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tocsin.jit import f64, helper, i64, inlined, kernel
from tocsin.policies.multistage.ranks import RANKED, Ranks, first_lighter, following, preceding, shift
from tocsin.policies.multistage.stepping import BEST_FIT, OVER, POOR, REACHED, STUCK, SWAPPED, TOLD, TOO_MANY
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
    relief,
    sort_by_level,
)

Array = Any

BULK_REACH, BULK_LIGHTEST = 4, 3  # while the gap is wide
SWAP_TARGETS, SWAPS_FOR_ONE = 4, 4
BEYOND = np.int32(0x7FFFFFFF)  # after the last backend subscription


class Pair(NamedTuple):
    """A source, a target, and what a gain is measured by: the highest level, the power, and the sum before."""

    b: int
    d: int
    top: float
    power: int
    before: float


@inlined
def _sum(b: int, d: int, at_b: float, at_d: float, top: float, power: int, world: World) -> float:
    """Of the powers of both levels, weighted by capacity."""
    here, there = world.capacities[b], world.capacities[d]
    powers: float = here * (at_b / here / top) ** power + there * (at_d / there / top) ** power
    return powers


@inlined
def _paired(b: int, d: int, top: float, power: int, world: World, board: Board) -> Pair:
    return Pair(b, d, top, power, _sum(b, d, board.loads[b], board.loads[d], top, power, world))


@inlined
def _gain(pair: Pair, at_b: float, at_d: float, world: World) -> float:
    return pair.before - _sum(pair.b, pair.d, at_b, at_d, pair.top, pair.power, world)


@inlined
def _ideal(pair: Pair, world: World, board: Board) -> float:
    """What would make both levels equal by going."""
    apart = level(pair.b, world, board) - level(pair.d, world, board)
    ideal: float = apart / (1 / world.capacities[pair.b] + 1 / world.capacities[pair.d])
    return ideal


@inlined
def _height(pair: Pair, world: World, board: Board) -> float:
    """What neither may reach."""
    return level(pair.b, world, board) * (1 - ROUNDING)


@inlined
def _gain_of_one(i: int, pair: Pair, world: World, board: Board) -> float:
    """By moving ``i``; -∞ where the target would reach the source."""
    new = board.loads[pair.d] + world.weights[i] + burden(i, pair.d, world, board)
    if new / world.capacities[pair.d] >= _height(pair, world, board):
        return -np.inf
    left = board.loads[pair.b] - world.weights[i] - relief(i, pair.b, world, board)
    return _gain(pair, left, new, world)


@inlined
def _best_of_side(
    side: int, rank: int, reach: int, pair: Pair, world: World, board: Board, ranked: Ranks, refused: Array
) -> tuple[float, int]:
    """Of ``reach`` members of the source from ``rank`` on, lighter (1) or heavier (-1) ones: gain and rank."""
    best, found = 0.0, NONE
    for _ in range(reach):
        rank = following(pair.b, rank, ranked) if side > 0 else preceding(pair.b, rank, ranked)
        if rank < 0 or rank >= len(ranked.order) or ranked.falling[rank] <= 0:
            break
        i = ranked.order[rank]
        if (board.loads[pair.d] + world.weights[i]) / world.capacities[pair.d] >= _height(pair, world, board):
            refused[OVER] += 1
            break
        gain = _gain_of_one(i, pair, world, board)
        if gain == -np.inf:
            refused[OVER] += 1
        if gain > best:
            best, found = gain, rank
        rank += side
    return best, found


@helper
def _best_single(
    reach: int, pair: Pair, world: World, board: Board, ranked: Ranks, refused: Array
) -> tuple[float, int]:
    """The member with a weight near the ideal that gains most by going: gain and rank."""
    middle = first_lighter(ranked.falling, _ideal(pair, world, board))
    best, found = _best_of_side(1, middle, reach, pair, world, board, ranked, refused)
    other, rank = _best_of_side(-1, middle - 1, reach, pair, world, board, ranked, refused)
    return (other, rank) if other > best else (best, found)


@helper
def _swapped(i: int, other: int, pair: Pair, world: World, board: Board) -> tuple[float, float]:
    """Loads of both once ``i`` of the source and ``other`` of the target have changed places; rows are in order."""
    m, b, d = len(board.loads), pair.b, pair.d
    at_b = board.loads[b] - world.weights[i] + world.weights[other]
    at_d = board.loads[d] + world.weights[i] - world.weights[other]
    one, two = world.offsets[i], world.offsets[other]
    while one < world.offsets[i + 1] or two < world.offsets[other + 1]:
        k = world.items[one] if one < world.offsets[i + 1] else BEYOND
        h = world.items[two] if two < world.offsets[other + 1] else BEYOND
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
def _gain_of_two(i: int, other: int, pair: Pair, world: World, board: Board) -> float:
    """By swapping them; -∞ where either broker would reach the source's level."""
    left, new = _swapped(i, other, pair, world, board)
    if max(left / world.capacities[pair.b], new / world.capacities[pair.d]) >= _height(pair, world, board):
        return -np.inf
    return _gain(pair, left, new, world)


@helper
def _best_return(rank: int, ideal: float, pair: Pair, world: World, board: Board, ranked: Ranks) -> tuple[float, int]:
    """Who of the target, lighter by about the ideal, gains most by changing places with ``rank``: gain and rank."""
    best, found = 0.0, NONE
    ahead = first_lighter(ranked.falling, ranked.falling[rank] - ideal)
    behind = ahead - 1
    for turn in range(SWAPS_FOR_ONE):
        if turn & 1 == 0:
            other = following(pair.d, ahead, ranked)
            ahead = other + 1
        else:
            other = preceding(pair.d, behind, ranked)
            behind = other - 1
        if 0 <= other < len(ranked.order):
            gain = _gain_of_two(ranked.order[rank], ranked.order[other], pair, world, board)
            if gain > best:
                best, found = gain, other
    return best, found


@helper
def _best_swap(tries: int, pair: Pair, world: World, board: Board, ranked: Ranks) -> tuple[float, int, int]:
    """Of ``tries`` members of the source, spread over the ranks, the best swap: gain and both ranks."""
    end, ideal = len(ranked.order), _ideal(pair, world, board)
    best, found, back = 0.0, NONE, NONE
    rank = NONE
    for turn in range(min(tries, end)):
        rank = following(pair.b, max(rank + 1, turn * end // tries), ranked)
        if rank >= end or ranked.falling[rank] <= 0:
            break
        gain, other = _best_return(rank, ideal, pair, world, board, ranked)
        if gain > best:
            best, found, back = gain, rank, other
    return best, found, back


@helper
def _best_step(
    b: int,
    lighter: Array,
    top: float,
    power: int,
    reach: int,
    near: int,
    far: int,
    least_gain: float,
    world: World,
    board: Board,
    ranked: Ranks,
    refused: Array,
) -> tuple[int, int, int]:
    """A single move off ``b``, or else a swap, that gains most: rank, target, and the rank that comes back; or -1."""
    best, chosen, target, back = least_gain, NONE, NONE, NONE
    for d in lighter[:far]:
        pair = _paired(b, d, top, power, world, board)
        gain, rank = _best_single(near, pair, world, board, ranked, refused)
        if gain > best:
            best, chosen, target = gain, rank, d
    if chosen >= 0:
        return chosen, target, back
    for d in lighter[:SWAP_TARGETS]:
        pair = _paired(b, d, top, power, world, board)
        gain, rank, other = _best_swap(4 * reach, pair, world, board, ranked)
        if gain > best:
            best, chosen, target, back = gain, rank, d, other
    return chosen, target, back


@helper
def _is_bulky(bulk: float, by_level: Array, world: World, board: Board, ranked: Ranks) -> bool:
    """The gap between highest and lowest is more than ``bulk`` heaviest subscribers wide."""
    high, low = by_level[-1], by_level[0]
    gap: float = (level(high, world, board) - level(low, world, board)) * world.capacities[high]
    heaviest: float = ranked.falling[0] if len(ranked.falling) else 0.0
    return gap / 2 > bulk * heaviest


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
    """Steps until cov is down at ``until``: how it ended, and after how many."""
    world, board = World(offsets, items, rates, weights, capacities), Board(assigned, counts, loads)
    ranked = Ranks(order, falling, words, summary)
    m, done = len(loads), 0
    by_level = np.arange(m)
    while done + 2 <= len(steps):
        mean, cov = mean_and_cov(world, board)
        if cov <= until:
            return REACHED, done
        sort_by_level(by_level, world, board)
        top, near, far = level(by_level[m - 1], world, board), reach, lightest
        if _is_bulky(bulk, by_level, world, board, ranked):
            near, far = min(BULK_REACH, reach), min(BULK_LIGHTEST, lightest)
        rank, b, target, back = NONE, NONE, NONE, NONE
        for heavy in range(m - 1, 0, -1):
            b = by_level[heavy]
            if level(b, world, board) <= mean:
                break
            rank, target, back = _best_step(
                b, by_level[:heavy], top, power, reach, near, far, least_gain, world, board, ranked, refused
            )
            if rank >= 0:
                break
            refused[POOR] += 1
        if rank < 0:
            return STUCK, done
        shift(rank, b, target, world, board, ranked)
        steps[done], why[done] = order[rank], BEST_FIT if back < 0 else SWAPPED
        done += 1
        if back >= 0:
            shift(back, target, b, world, board, ranked)
            steps[done], why[done] = order[back], SWAPPED
            done += 1
    return TOO_MANY, done
