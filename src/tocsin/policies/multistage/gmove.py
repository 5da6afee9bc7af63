"""GMOVE: group migration, the multistage paper's future work. Ours.

The heaviest broker sheds what it has above the mean, or what fills its target up to the mean, as a *group*: members
leave in the order of (what the source loses - what the target gains - nu * mean weight) / weight, and whoever shares
with those who have left gains by following. Of the three lightest brokers the one where the total load grows least for
what is shed gets the group. XBAL finishes it.

``nu`` is the price of a move in mean subscriber weights: 0.25 gives the least load, 4 the fewest moves. Worth it while
subscriptions are shared by few, less than about five frontend ones a broker and backend one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from tocsin.policies.checks import at_least
from tocsin.policies.multistage import grouping
from tocsin.policies.multistage.board import Board, trivial
from tocsin.policies.multistage.load import LoadModel, weights
from tocsin.policies.multistage.plan import Plan, Reason, nothing
from tocsin.policies.multistage.snapshot import Floats, Ints, Small, Snapshot
from tocsin.policies.multistage.xbal import Xbal


@dataclass(frozen=True, slots=True)
class Gmove:
    stop_cov: float = 0.005
    nu: float = 1.0

    def __post_init__(self) -> None:
        at_least("stop_cov", self.stop_cov, 0)
        at_least("nu", self.nu, 0)

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        sent = weights(snapshot)
        if reason := trivial(snapshot, sent):
            return nothing("gmove", snapshot, reason)
        model = LoadModel(snapshot)
        moved = self._grouped(model, sent)
        board = Board(snapshot, sent, model)
        board.note(moved, Reason.WITH_GROUP)
        return board.plan("gmove", Xbal(self.stop_cov).repair(board))

    def _grouped(self, model: LoadModel, sent: Floats) -> Ints:
        s, steps = model.snapshot, np.empty(4 * model.snapshot.n, np.int64)
        starts, holders = by_subscription(s)
        price = self.nu * float(sent[sent > 0].mean())
        made = grouping.regroup(
            *(s.offsets, s.items, s.rates, sent, s.capacities, model.assigned, model.counts, model.loads),
            *(s.pinned, starts, holders, steps, self.stop_cov, price),
        )
        return steps[:made]


def by_subscription(snapshot: Snapshot) -> tuple[Ints, Small]:
    """Who wants each backend subscription, as offsets and subscribers."""
    counts = np.bincount(snapshot.items, minlength=snapshot.q)
    rows = np.repeat(np.arange(snapshot.n, dtype=np.int32), np.diff(snapshot.offsets))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)
    return starts, rows[np.argsort(snapshot.items, kind="stable")]
