"""Greedy shuffle (GSH): section 5.3 of the multistage paper.

All brokers start empty; the subscribers, heaviest first, go to the broker that is least loaded then. Departures:
brokers are compared by load over capacity; pinned subscribers and those without load stay where they are, the pinned
ones counting from the start; ties go to the first number, which the paper leaves open.

It does not look at sharing when it chooses, and can end with a higher maximum than it found: the framework discards
it then.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from tocsin.policies.multistage import filling
from tocsin.policies.multistage.board import trivial
from tocsin.policies.multistage.load import LoadModel, weights
from tocsin.policies.multistage.plan import Plan, nothing, shuffle_plan
from tocsin.policies.multistage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Gsh:
    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("gsh", snapshot, reason)
        model = LoadModel.emptied(snapshot, sent)
        order = np.argsort(-sent, kind="stable")
        order = order[(sent[order] > 0) & ~snapshot.pinned[order]]
        s = snapshot
        filling.fill(order, s.offsets, s.items, s.rates, s.capacities, model.assigned, model.counts, model.loads)
        return shuffle_plan("gsh", s, sent, model.assigned, order)
