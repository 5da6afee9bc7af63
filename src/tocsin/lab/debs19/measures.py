"""What is read from the traces of several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tocsin.lab.debs19.schemes import SETTLED_S
from tocsin.lab.trace import Trace
from tocsin.policies.multistage.framework import Action


def mean(of: Callable[[Trace], float], traces: Sequence[Trace]) -> float:
    """Over the seeds."""
    return float(np.mean([of(trace) for trace in traces]))


def each(of: Callable[[Trace], float], traces: Sequence[Trace]) -> list[float]:
    return [float(of(trace)) for trace in traces]


def cov(trace: Trace) -> float:
    """Mean cov once all have subscribed."""
    return float(trace.covs()[SETTLED_S:].mean())


def maximum(trace: Trace) -> float:
    """Mean of the heaviest broker's load once all have subscribed."""
    return float(trace.loads[SETTLED_S:].max(axis=1).mean())


def peak(trace: Trace) -> float:
    return float(trace.loads.max())


def migrations(trace: Trace) -> float:
    return float(trace.migrations)


def without_shuffle(trace: Trace) -> float:
    """Migrations that are not the shuffle's own."""
    return float(trace.migrations_by(Action.MIGRATE))


def shuffles(trace: Trace) -> float:
    return float(len(trace.plans(Action.SHUFFLE)))


def last_plan_s(trace: Trace) -> float:
    return float(max((plan.at_s for plan in trace.plans()), default=0))
