"""What the framework remembers from check to check: a value, so that a test can write one and a simulator keep many.

Loads of the last ``window_s`` are averaged, because executions come in bursts: the window that does not lie is a
common multiple of the channels' periods. They are forgotten when brokers come or go, and after a plan, since they were
measured on an assignment that is no more. The usual mean, against which relative thresholds are held, is forgotten
slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tocsin.policies.multistage.plan import Plan
from tocsin.policies.multistage.snapshot import Flags, Floats, Ints, Snapshot

Moved = Ints | frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """``samples`` are times and loads, ``moved`` times and who was moved then: by name, or by number without names."""

    samples: tuple[tuple[float, Floats], ...] = ()
    brokers: tuple[str, ...] = ()
    usual_mean: float | None = None
    planned_at: float | None = None
    moved: tuple[tuple[float, Moved], ...] = ()

    def observed(self, snapshot: Snapshot, loads: Floats, now: float, window_s: float, trend_s: float) -> Memory:
        names = tuple(snapshot.broker(j) for j in range(snapshot.m))
        kept = [sample for sample in self.samples if now - sample[0] < window_s] if names == self.brokers else []
        usual = self._usual(float(loads.mean()), now, trend_s)
        return replace(self, samples=(*kept, (now, loads.copy())), brokers=names, usual_mean=usual)

    def _usual(self, mean: float, now: float, trend_s: float) -> float:
        if self.usual_mean is None or not self.samples:
            return mean if self.usual_mean is None else self.usual_mean
        fresh = 1 - math.exp(-max(0.0, now - self.samples[-1][0]) / trend_s)
        return self.usual_mean + fresh * (mean - self.usual_mean)

    @property
    def loads(self) -> Floats:
        """The moving average."""
        mean: Floats = np.mean([loads for _, loads in self.samples], axis=0)
        return mean

    def planned(self, plan: Plan, now: float, rest_s: float) -> Memory:
        """``plan`` is being carried out."""
        s = plan.snapshot
        who: Moved = frozenset(s.subscribers[i] for i in plan.order) if s.subscribers else plan.order
        kept = [batch for batch in self.moved if now - batch[0] < rest_s]
        return replace(self, samples=(), planned_at=now, moved=(*kept, (now, who)))

    def resting(self, snapshot: Snapshot, now: float, rest_s: float) -> Flags:
        """Who was moved within ``rest_s``, or is pinned anyway."""
        pinned = snapshot.pinned.copy()
        for when, who in self.moved:
            if now - when >= rest_s:
                continue
            if isinstance(who, frozenset):
                pinned |= np.fromiter((name in who for name in snapshot.subscribers), bool, snapshot.n)
            else:
                pinned[who[who < snapshot.n]] = True
        return pinned
