"""The load model: equations 1 to 8 of section 4, kept up to date move by move.

``F_j = sum over k of z_jk (1 + n_jk) lambda_k``: a broker fetches each backend subscription once, however many of its
subscribers want it, and sends it to each of them. A move changes two brokers and costs time in proportion to what
the subscriber itself wants.

Brokers need not be equal, as the paper has them: what is balanced is the *level* F_j / c_j, and mean and cov are
weighted by capacity, so that equal levels are cov 0. With equal capacities these are equations 6 to 8.
"""

from __future__ import annotations

import numpy as np

from tocsin.policies.multistage import counting
from tocsin.policies.multistage.snapshot import Floats, Small, Snapshot


def weights(snapshot: Snapshot) -> Floats:
    """u_i of each subscriber: bytes a second that it is sent."""
    found = np.zeros(snapshot.n)
    counting.weigh(snapshot.offsets, snapshot.items, snapshot.rates, found)
    return found


def cov(loads: Floats, capacities: Floats) -> float:
    """Equation 6 over levels; 0 where nothing flows (settled: the paper divides by 0)."""
    mean = loads.sum() / capacities.sum()
    if mean <= 0:
        return 0.0
    squares = capacities * (loads / capacities - mean) ** 2
    return float(np.sqrt(squares.sum() / capacities.sum()) / mean)


class LoadModel:
    """Loads and counters of an assignment that starts as the snapshot's. ``counts`` is by subscription, then broker."""

    def __init__(self, snapshot: Snapshot, assigned: Small | None = None) -> None:
        self.snapshot = snapshot
        self.assigned = (snapshot.assigned if assigned is None else assigned).copy()
        self.counts = np.zeros(snapshot.q * snapshot.m, np.int32)
        self.loads = np.zeros(snapshot.m)
        self.recompute()

    @classmethod
    def emptied(cls, snapshot: Snapshot, sent: Floats) -> LoadModel:
        """Where a shuffle begins: all are nowhere (-1), except who is pinned and who carries no load."""
        stays = snapshot.pinned | (sent <= 0)
        return cls(snapshot, np.where(stays, snapshot.assigned, np.int32(-1)))

    def move(self, i: int, target: int) -> int:
        """To ``target``; the broker it came from, so that ``move(i, move(i, j))`` changes nothing."""
        s, source = self.snapshot, int(self.assigned[i])
        if source != target:
            counting.transfer(i, source, target, s.offsets, s.items, s.rates, self.counts, self.loads)
            self.assigned[i] = target
        return source

    def recompute(self) -> None:
        """From scratch, which cancels the rounding of many moves."""
        s = self.snapshot
        self.counts[:], self.loads[:] = 0, 0.0
        counting.count(s.offsets, s.items, s.rates, self.assigned, self.counts, self.loads)

    @property
    def levels(self) -> Floats:
        """F_j / c_j."""
        levels: Floats = self.loads / self.snapshot.capacities
        return levels

    @property
    def maximum(self) -> float:
        return float(self.levels.max())

    @property
    def mean(self) -> float:
        """μ, bytes a second and broker (equation 8)."""
        return float(self.loads.mean())

    @property
    def total(self) -> float:
        return float(self.loads.sum())

    @property
    def cov(self) -> float:
        return cov(self.loads, self.snapshot.capacities)
