"""What a run leaves: loads second by second, everybody's whereabouts at the checks, and every decision.

A trace holds nothing that depends on the machine: the same world, policies and seed give the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin.policies.multistage.framework import Action
from tocsin.policies.multistage.plan import Reason
from tocsin.policies.multistage.snapshot import Floats, Ints


@dataclass(frozen=True, slots=True)
class Decided:
    """A check at which a plan was made or discarded."""

    at_s: int
    action: Action
    reason: Reason
    moves: int
    cov_before: float
    cov_after: float
    maximum_before: float
    maximum_after: float
    discarded: tuple[Reason, ...] = ()


@dataclass(frozen=True, eq=False)
class Trace:
    """``received`` and ``sent`` are bytes by second and broker, ``users`` people by check and broker.

    ``moved`` are the migrations carried out by second, ``made`` all of them by who planned them. Where brokers have a
    limit, ``queued`` are the bytes that wait at the end of a second and ``waited`` byte-seconds of waiting that arrive
    with it; else they are empty.
    """

    check_s: int
    window_s: int
    received: Floats
    sent: Floats
    users: Ints
    moved: Ints
    decided: tuple[Decided, ...]
    made: Mapping[Action, int]
    fetches: int
    deliveries: int
    frontend: int
    backend: int
    upstream: int
    queued: Floats
    waited: Floats

    @property
    def messages(self) -> int:
        return self.fetches + self.deliveries

    @property
    def migrations(self) -> int:
        return int(self.moved.sum())

    def migrations_by(self, action: Action) -> int:
        """Planned by migration, or by the shuffle, and carried out."""
        return self.made.get(action, 0)

    def plans(self, action: Action | None = None) -> list[Decided]:
        """Those that were begun; the next may have come before all of its moves were made."""
        return [d for d in self.decided if d.moves and (action is None or d.action is action)]

    @cached_property
    def loads(self) -> Floats:
        """Bytes a second, by second and broker, averaged over the window before, or over what there is of it."""
        total = np.cumsum(np.vstack([np.zeros(self.received.shape[1]), self.received + self.sent]), axis=0)
        ends = np.arange(1, len(total))
        begins = np.maximum(ends - self.window_s, 0)
        loads: Floats = (total[ends] - total[begins]) / (ends - begins)[:, None]
        return loads

    def covs(self, loads: Floats | None = None) -> Floats:
        """cov of the averaged loads by second."""
        loads = self.loads if loads is None else loads
        means = loads.mean(axis=1)
        covs: Floats = np.divide(loads.std(axis=1), means, out=np.zeros(len(means)), where=means > 0)
        return covs

    def delay_s(self, since_s: int) -> float:
        """How long a byte waited at a broker, in the mean, of those that came from ``since_s`` on."""
        came = (self.received + self.sent)[since_s:].sum()
        return float(self.waited[since_s:].sum() / came) if came > 0 else 0.0
