"""A world in which kernels move subscribers one by one, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tocsin.policies.multistage import ranks, stepping
from tocsin.policies.multistage.load import LoadModel
from tocsin.policies.multistage.plan import Plan, Reason, Status, code, net_plan
from tocsin.policies.multistage.snapshot import Floats, Ints, Snapshot

ENDINGS = {
    stepping.REACHED: (Status.DONE, Reason.REACHED),
    stepping.STUCK: (Status.STALLED, Reason.NO_VALID_MOVE),
    stepping.TOO_MANY: (Status.STALLED, Reason.MOVE_LIMIT),
}
MADE = (Reason.TO_LIGHTEST, Reason.TO_SIMILAR, Reason.BEST_FIT, Reason.SWAPPED)
CODES = np.array([code(reason) for reason in MADE])
REFUSED = (Reason.OVER_SOURCE, Reason.NO_LOAD, Reason.NO_GAIN, Reason.NONE_ACCEPTS)


class Board:
    """The snapshot's assignment, or that of a model, which it goes on changing. Pinned subscribers are not on it."""

    def __init__(self, snapshot: Snapshot, sent: Floats, model: LoadModel | None = None) -> None:
        self.snapshot = snapshot
        self.model = model or LoadModel(snapshot)
        self.weights = sent
        order = np.argsort(-self.weights, kind="stable")
        self._order = order[~snapshot.pinned[order]]
        self._falling = self.weights[self._order]
        layer = len(self._order) // 4096 + 1
        self._words = np.zeros(snapshot.m * layer * 64, np.uint64)
        self._summary = np.zeros(snapshot.m * layer, np.uint64)
        ranks.mark(self._order, self._falling, self._words, self._summary, self.model.assigned)
        self._refused = np.zeros(len(REFUSED), np.int64)
        self._steps, self._why = np.empty(0, np.int64), np.empty(0, np.int64)

    def run(self, kernel: Callable[..., tuple[int, int]], *parameters: Any) -> tuple[Status, Reason]:
        """Let a kernel move, one by one; how it ended."""
        s, model = self.snapshot, self.model
        limit = 4 * s.n + 1000
        steps, why = np.empty(limit, np.int64), np.empty(limit, np.int64)
        ended, made = kernel(
            *(s.offsets, s.items, s.rates, self.weights, s.capacities),
            *(model.assigned, model.counts, model.loads),
            *(self._order, self._falling, self._words, self._summary),
            *(steps, why, self._refused, *parameters),
        )
        self._note(steps[:made], CODES[why[:made]])
        return ENDINGS[ended]

    def note(self, steps: Ints, reason: Reason) -> None:
        """Moves that were made before this board was."""
        self._note(steps, np.full(len(steps), code(reason)))

    def plan(self, policy: str, ended: tuple[Status, Reason]) -> Plan:
        """What became of the snapshot's assignment."""
        if len(self._steps) == 0 and ended[0] is Status.DONE:
            ended = (Status.NOTHING, Reason.BALANCED)
        rejected = {reason: int(count) for reason, count in zip(REFUSED, self._refused, strict=True)}
        return net_plan(policy, self.snapshot, ended, self.model.assigned, self._steps, self._why, rejected)

    def _note(self, steps: Ints, why: Ints) -> None:
        self._steps, self._why = np.concatenate([self._steps, steps]), np.concatenate([self._why, why])


def trivial(snapshot: Snapshot, sent: Floats) -> Reason | None:
    """Why there is nothing to balance at all, if so (settled: the paper leaves both out)."""
    if snapshot.m == 1:
        return Reason.ONE_BROKER
    return None if sent.any() else Reason.IDLE
