"""Generated worlds for the balancing benchmark: who wants what, and a start as skewed as nearest placement makes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.policies.multistage.snapshot import Snapshot

SKEW = np.array([2218, 1541, 1366, 1200, 1073, 885, 709, 492, 340, 176]) / 10_000  # one draw of nearest placement
RATE_BYTES, SPREAD_BYTES, LEAST_BYTES = 20_000.0, 5_000.0, 1_000.0
INSIDE = 0.9  # interests within the own community, and members of a community at its near broker
EVENNESS = 1.5  # Dirichlet parameter of communities' sizes, such that GSH stands at 1.41 of the bound
SUBSCRIPTIONS_A_COMMUNITY = 100

Array = np.ndarray[Any, Any]


def paper(seed: int, n: int = 10_000, m: int = 10) -> Snapshot:
    """U1k, the paper's setting: 10 to 30 of 1,000 subscriptions each."""
    return _world(seed, n, m, 1_000, (10, 30))


def sparse(seed: int, n: int = 10_000, m: int = 10) -> Snapshot:
    """U20k: uniform too, with ten frontend subscriptions to a backend one."""
    return _world(seed, n, m, 2 * n, (10, 30))


def dense(seed: int, n: int, m: int) -> Snapshot:
    """Uniform, 20 of n / 10 each."""
    return _world(seed, n, m, n // 10, (20, 20))


def community(seed: int, n: int, m: int) -> Snapshot:
    """20 of 2 n each, nine in ten of them inside one of n / 50 communities."""
    return _world(seed, n, m, 2 * n, (20, 20), 2 * n // SUBSCRIPTIONS_A_COMMUNITY)


def settled(seed: int, n: int = 10_000, m: int = 10) -> Snapshot:
    """G20k: communities, nine in ten of each at the broker near it."""
    return _world(seed, n, m, 2 * n, (10, 30), 2 * n // SUBSCRIPTIONS_A_COMMUNITY, near=True)


def small(seed: int, n: int, m: int, q: int, communities: int = 0) -> Snapshot:
    """Small enough for an exact solver: 2 to 5 of q each, a random start."""
    return _world(seed, n, m, q, (2, 5), communities)


def _world(
    seed: int, n: int, m: int, q: int, each: tuple[int, int], communities: int = 0, near: bool = False
) -> Snapshot:
    rng = np.random.default_rng(seed)
    counts = rng.integers(each[0], each[1] + 1, n)
    rows = np.repeat(np.arange(n), counts)
    member = np.zeros(n, np.int64)
    if communities:
        member = rng.choice(communities, n, p=rng.dirichlet(np.full(communities, EVENNESS)))
    rows, items = _distinct(rng, rows, q, member, communities)
    rates = np.maximum(LEAST_BYTES, rng.normal(RATE_BYTES, SPREAD_BYTES, q))
    assigned = rng.choice(m, n, p=_shares(m))
    if near:
        homes = rng.choice(m, communities, p=_shares(m))
        assigned = np.where(rng.random(n) < INSIDE, homes[member], assigned)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return Snapshot(offsets, items, rates, assigned, np.ones(m))


def _distinct(rng: np.random.Generator, rows: Array, q: int, member: Array, communities: int) -> tuple[Array, Array]:
    """Draw for each row, and draw again what a row has twice; the few left after two rounds are dropped."""
    keys = rows * q + _draw(rng, member[rows], q, communities)
    for _ in range(2):
        keys.sort()
        twice = np.flatnonzero(np.diff(keys) == 0)
        again = keys[twice] // q
        keys[twice] = again * q + _draw(rng, member[again], q, communities)
    keys = np.unique(keys)
    return keys // q, keys % q


def _draw(rng: np.random.Generator, member: Array, q: int, communities: int) -> Array:
    anywhere = rng.integers(0, q, len(member))
    if not communities:
        return anywhere
    size = q // communities
    inside = member * size + rng.integers(0, size, len(member))
    return np.where(rng.random(len(member)) < INSIDE, inside, anywhere)


def _shares(m: int) -> Array:
    shares = np.interp(np.linspace(0, len(SKEW) - 1, m), np.arange(len(SKEW)), SKEW)
    return shares / shares.sum()
