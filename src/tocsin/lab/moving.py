"""Migrations of the simulator, by the coordinator's rules.

A plan is carried out at a bounded rate, or at once. The next one takes the place of what has not been done: plans are
never added up. Whoever has been moved rests; whoever was only planned to does not.
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from tocsin.policies.multistage.framework import Action
from tocsin.policies.multistage.plan import Plan
from tocsin.policies.multistage.snapshot import Flags, Small


class Moving:
    """Of ``n`` subscribers at most ``per_s`` a second; ``made`` counts moves by who planned them."""

    def __init__(self, n: int, per_s: int | None) -> None:
        self._per_s = per_s
        self._left = deque[tuple[int, int]]()
        self._action = Action.NOTHING
        self._moved_at = np.full(n, -np.inf)
        self.made = Counter[Action]()

    def begin(self, action: Action, plan: Plan) -> None:
        """In place of what is left of the plan before."""
        self._left = deque(zip(plan.order.tolist(), plan.targets.tolist(), strict=True))
        self._action = action

    def due(self, now: float) -> list[tuple[int, int]]:
        """Who goes where within this second."""
        count = min(len(self._left), self._per_s or len(self._left))
        moves = [self._left.popleft() for _ in range(count)]
        self._moved_at[[i for i, _ in moves]] = now
        self.made[self._action] += count
        return moves

    def heading(self, assigned: Small) -> Small:
        """Everyone's broker when what is left has been done."""
        after = assigned.copy()
        for i, target in self._left:
            after[i] = target
        return after

    def resting(self, now: float, rest_s: float) -> Flags:
        rests: Flags = now - self._moved_at < rest_s
        return rests
