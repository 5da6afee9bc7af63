"""The multistage framework: whether to do nothing, to migrate or to shuffle (Algorithm 1, lines 2 to 6).

::

    cov > gamma and mean > theta   →  shuffle, unless that raises the maximum or gains too little; then as below
    cov > alpha and mean > beta    →  migrate, likewise
    otherwise                      →  nothing, and why

cov and mean are of loads averaged over ``window_s``. Where this departs from the paper:

- The print shuffles and then migrates on loads from before the shuffle. Here it is one or the other.
- A shuffle as printed can raise the maximum. A plan that does, or that lowers neither the maximum nor cov by the
  fraction ``least_gain``, is discarded with its reason: a plan must pay for itself.
- One threshold starts and ends the print's migration. Here ``alpha`` starts it and the policy's own ``stop_cov``,
  which may not be higher, ends it.
- After a plan nothing is planned for ``cooldown_s``, and whoever was moved stays for ``rest_s``: whoever makes the
  snapshot pins them, since only it knows which moves were made and when they ended. With both, and with policies that
  never raise the maximum, nobody is sent to and fro.
- ``relative`` makes ``beta`` and ``theta`` fractions of the usual mean load (averaged over about ``trend_s``) instead
  of bytes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from tocsin.policies.checks import above, at_least, between
from tocsin.policies.multistage.board import trivial
from tocsin.policies.multistage.load import LoadModel, cov, weights
from tocsin.policies.multistage.memory import Memory
from tocsin.policies.multistage.plan import BalancingPolicy, Plan, Reason, Status
from tocsin.policies.multistage.simsh import Simsh
from tocsin.policies.multistage.snapshot import Floats, Snapshot
from tocsin.policies.multistage.xbal import Xbal

DAY_S = 86_400.0  # longest average: every decision in it is remembered


class Action(StrEnum):
    NOTHING = "nothing"
    MIGRATE = "migrate"
    SHUFFLE = "shuffle"


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What to do and why; ``mean`` and ``cov`` are what was compared. ``discarded`` plans are in the order tried.

    ``rejected`` counts the candidates that the plan refused, or the last one that found nothing to move.
    """

    action: Action
    reason: Reason
    mean: float
    cov: float
    plan: Plan | None = None
    discarded: tuple[Plan, ...] = ()
    rejected: Mapping[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Framework:
    """Without ``shuffle`` it only migrates, without ``migrate`` it only shuffles."""

    migrate: BalancingPolicy | None = field(default_factory=Xbal)
    shuffle: BalancingPolicy | None = field(default_factory=Simsh)
    alpha: float = 0.15
    beta: float = 0.0
    gamma: float = 0.3
    theta: float = 0.0
    relative: bool = False
    window_s: float = 60.0
    trend_s: float = 3600.0
    cooldown_s: float = 60.0
    rest_s: float = 300.0
    least_gain: float = 0.001

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma", "theta", "cooldown_s", "rest_s"):
            at_least(name, getattr(self, name), 0)
        between("window_s", self.window_s, 0, DAY_S)
        above("trend_s", self.trend_s, 0)
        between("least_gain", self.least_gain, 0, 1)
        stop = getattr(self.migrate, "stop_cov", 0.0)
        if stop > self.alpha:
            raise ValueError(f"stop_cov: expected at most alpha ({self.alpha}), where migration starts, got {stop}")

    def decide(
        self, snapshot: Snapshot, memory: Memory, rng: Random, now: float, measured: Floats | None = None
    ) -> tuple[Verdict, Memory]:
        """``measured`` are the brokers' own loads, in the snapshot's order; without them the model's count.

        The memory that comes back takes a verdict with a plan as carried out from now on.
        """
        loads = LoadModel(snapshot).loads if measured is None else measured
        memory = memory.observed(snapshot, loads, now, self.window_s, self.trend_s)
        mean, spread = float(memory.loads.mean()), cov(memory.loads, snapshot.capacities)
        reason = trivial(snapshot, weights(snapshot)) or self._waits(memory, now)
        if reason is not None:
            return Verdict(Action.NOTHING, reason, mean, spread), memory
        verdict = self._tried(snapshot, memory, rng, now, mean, spread)
        if verdict.plan is not None:
            memory = memory.planned(now)
        return verdict, memory

    def _waits(self, memory: Memory, now: float) -> Reason | None:
        cooling = memory.planned_at is not None and now - memory.planned_at < self.cooldown_s
        return Reason.COOLING_DOWN if cooling else None

    def _tried(
        self, snapshot: Snapshot, memory: Memory, rng: Random, now: float, mean: float, spread: float
    ) -> Verdict:
        unit = (memory.usual_mean or 0.0) if self.relative else 1.0
        stages = (
            (Action.SHUFFLE, self.shuffle, self.gamma, self.theta * unit),
            (Action.MIGRATE, self.migrate, self.alpha, self.beta * unit),
        )
        reason, discarded, rejected = Reason.LOW_COV, list[Plan](), dict[Reason, int]()
        for action, policy, over, least in stages:
            if policy is None or spread <= over:
                continue
            if mean <= least:
                reason = Reason.LOW_LOAD
                continue
            plan = self._judged(policy.plan(snapshot, rng, now))
            if plan.status is Status.DISCARDED:
                discarded.append(plan)
            elif len(plan):
                return Verdict(action, plan.reason, mean, spread, plan, tuple(discarded), plan.rejected)
            reason, rejected = plan.reason, dict(plan.rejected)
        return Verdict(Action.NOTHING, reason, mean, spread, None, tuple(discarded), rejected)

    def _judged(self, plan: Plan) -> Plan:
        """The plan, or the same one discarded."""
        if not len(plan):
            return plan
        before, after, kept = plan.before, plan.after, 1 - self.least_gain
        if after.maximum > before.maximum:
            return replace(plan, status=Status.DISCARDED, reason=Reason.RAISES_MAXIMUM)
        if after.maximum > before.maximum * kept and after.cov > before.cov * kept:
            return replace(plan, status=Status.DISCARDED, reason=Reason.TOO_LITTLE_GAIN)
        return plan
