"""Kernels that assign everybody anew: GSH and the passes of SIMSH."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.jit import f64, i32, i64, inlined, kernel, ro, rw

Array = Any

STEEPEST = 600.0  # the exponential stays finite


@kernel(ro(i64), ro(i64), ro(i32), ro(f64), ro(f64), rw(i32), rw(i32), rw(f64))
def fill(
    order: Array,
    offsets: Array,
    items: Array,
    rates: Array,
    capacities: Array,
    assigned: Array,
    counts: Array,
    loads: Array,
) -> None:
    """Each of ``order`` to the broker that is least loaded then."""
    m = len(loads)
    levels = loads / capacities
    for i in order:
        lightest = 0
        for j in range(1, m):
            if levels[j] < levels[lightest]:
                lightest = j
        gained = 0.0
        for at in range(offsets[i], offsets[i + 1]):
            k = items[at]
            cell = k * m + lightest
            gained += rates[k] if counts[cell] > 0 else 2 * rates[k]
            counts[cell] += 1
        assigned[i] = lightest
        loads[lightest] += gained
        levels[lightest] = loads[lightest] / capacities[lightest]


@inlined
def _price(level: float, kappa: float, tau: float) -> float:
    """Of a byte a second more; a factor common to all prices does not matter, so they are around ``tau``."""
    price: float = np.exp(max(-STEEPEST, min(STEEPEST, kappa * (level / tau - 1))))
    return price


@kernel(ro(i64), ro(i64), ro(i32), ro(f64), ro(f64), ro(f64), rw(i32), rw(i32), rw(f64), f64, f64)
def restream(
    order: Array,
    offsets: Array,
    items: Array,
    rates: Array,
    weights: Array,
    capacities: Array,
    assigned: Array,
    counts: Array,
    loads: Array,
    kappa: float,
    tau: float,
) -> None:
    """Take each of ``order`` out, unless it is nowhere (-1), and put it where its cost times the price is least.

    The cost at j is what j would send and fetch more. The price grows exponentially with j's level; it is kept per
    broker, since one step changes only two.
    """
    m = len(loads)
    price, saved = np.empty(m), np.empty(m)
    for j in range(m):
        price[j] = _price(loads[j] / capacities[j], kappa, tau)
    for i in order:
        if weights[i] <= 0:
            continue
        first, end, home = offsets[i], offsets[i + 1], assigned[i]
        for j in range(m):
            saved[j] = 0.0
        if home >= 0:
            lost = 0.0
            for at in range(first, end):
                k = items[at]
                cell = k * m + home
                counts[cell] -= 1
                lost += rates[k] if counts[cell] > 0 else 2 * rates[k]
            loads[home] -= lost
            price[home] = _price(loads[home] / capacities[home], kappa, tau)
        for at in range(first, end):
            k = items[at]
            rate, row = rates[k], k * m
            for j in range(m):
                saved[j] += rate if counts[row + j] > 0 else 0.0
        best, least = 0, np.inf
        for j in range(m):
            cost = (2 * weights[i] - saved[j]) * price[j]
            if cost < least:
                best, least = j, cost
        for at in range(first, end):
            counts[items[at] * m + best] += 1
        loads[best] += 2 * weights[i] - saved[best]
        assigned[i] = best
        price[best] = _price(loads[best] / capacities[best], kappa, tau)
