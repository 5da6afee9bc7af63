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

from tocsin.policies.multistage.snapshot import Floats, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """``samples`` are times and loads."""

    samples: tuple[tuple[float, Floats], ...] = ()
    brokers: tuple[str, ...] = ()
    usual_mean: float | None = None
    planned_at: float | None = None

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

    def planned(self, now: float) -> Memory:
        """A plan is being carried out."""
        return replace(self, samples=(), planned_at=now)
