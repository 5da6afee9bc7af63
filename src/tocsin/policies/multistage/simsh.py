"""SIMSH: a shuffle that puts those who want the same together, so that brokers fetch less. Ours, not the paper's.

What all brokers fetch is the sum over k of rate_k times the number of brokers that have k: the connectivity of a
hypergraph partition with subscribers as vertices and backend subscriptions as edges. It is lowered by restreaming: pass
after pass, the subscribers in random order are taken out and put where

    (what the broker would send and fetch more) * exp(kappa (level_j / tau - 1)),   tau = 1.05 * mean level sent

is least, with a price kappa of load that rises from pass to pass: first similarity, then balance. XBAL finishes it. The
new groups then get the brokers with which they have most subscribers in common (among brokers of equal capacity, and
only if nobody is pinned), which saves moves without changing loads.

``warm`` starts from what is there instead of empty brokers: half the moves for about 1 % of the gain where placement
had some sense. ``restarts`` repeat it and keep the lowest maximum. ``passes`` are the values of kappa; unset they
are seven, and three from 50,000 subscribers on.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from tocsin.policies.checks import above, at_least, between
from tocsin.policies.multistage import filling
from tocsin.policies.multistage.board import Board, trivial
from tocsin.policies.multistage.load import LoadModel, weights
from tocsin.policies.multistage.plan import Plan, nothing, shuffle_plan
from tocsin.policies.multistage.snapshot import Flags, Floats, Small, Snapshot
from tocsin.policies.multistage.xbal import Xbal

SEVEN = (5.0, 5.0, 10.0, 20.0, 40.0, 100.0, 200.0)
THREE = (10.0, 40.0, 150.0)
MANY_SUBSCRIBERS = 50_000
MOST_RESTARTS = 1_000
MOST_PASSES = 100


@dataclass(frozen=True, slots=True)
class Simsh:
    passes: tuple[float, ...] | None = None
    stop_cov: float = 0.001
    warm: bool = False
    restarts: int = 1

    def __post_init__(self) -> None:
        at_least("stop_cov", self.stop_cov, 0)
        between("restarts", self.restarts, 1, MOST_RESTARTS)
        between("passes", len(self.passes or SEVEN), 1, MOST_PASSES)
        for kappa in self.passes or ():
            above("passes", kappa, 0)

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("simsh", snapshot, reason)
        movable = (sent > 0) & ~snapshot.pinned
        chance = np.random.default_rng(rng.getrandbits(64))
        found = [self._shuffled(snapshot, sent, movable, chance) for _ in range(self.restarts)]
        best = min(found, key=lambda model: (model.maximum, model.total))
        return shuffle_plan("simsh", snapshot, sent, relabelled(snapshot, best.assigned, movable))

    def _shuffled(self, s: Snapshot, sent: Floats, movable: Flags, chance: np.random.Generator) -> LoadModel:
        model = LoadModel(s) if self.warm else LoadModel.emptied(s, sent)
        tau = 1.05 * float(sent.sum() / s.capacities.sum())
        for kappa in self.passes or (SEVEN if s.n < MANY_SUBSCRIBERS else THREE):
            order = chance.permutation(np.flatnonzero(movable))
            filling.restream(
                *(order, s.offsets, s.items, s.rates, sent, s.capacities),
                *(model.assigned, model.counts, model.loads, kappa, tau),
            )
        Xbal(self.stop_cov).repair(Board(s, sent, model))
        return model


def relabelled(snapshot: Snapshot, assigned: Small, movable: Flags) -> Small:
    """The same groups at the brokers where most of their members are already (the Hungarian method)."""
    from scipy.optimize import linear_sum_assignment

    if snapshot.pinned.any():
        return assigned
    m = snapshot.m
    pairs = assigned[movable].astype(np.int64) * m + snapshot.assigned[movable]
    shared = np.bincount(pairs, minlength=m * m).reshape(m, m)
    unequal = snapshot.capacities[:, None] != snapshot.capacities[None, :]
    _, broker_of = linear_sum_assignment(np.where(unequal, snapshot.n + 1, -shared))
    return np.where(movable, broker_of[assigned], assigned).astype(np.int32)
