"""Asking the policies. All of this runs in the balancer's one thread, because a large plan takes seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import msgspec
import scipy.optimize  # noqa: F401  a policy loads it when it first plans, which would count as its time

from tocsin.coordinator.choices import SHUFFLES, BalancingChoice, PolicyChoice
from tocsin.coordinator.decisions import Decision, Discarded, Figures, Trial, Trials, Waits
from tocsin.coordinator.events import WantedMove
from tocsin.coordinator.framing import bounded, framework_of
from tocsin.coordinator.moves import Expected
from tocsin.coordinator.sight import Sight
from tocsin.errors import Unavailable
from tocsin.policies.multistage.framework import Action, Framework, Verdict
from tocsin.policies.multistage.load import LoadModel
from tocsin.policies.multistage.memory import Memory
from tocsin.policies.multistage.plan import Move, Plan, Reason, Status, Summary
from tocsin.policies.multistage.snapshot import Floats, Snapshot

Timer = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Decided:
    decision: Decision
    moves: Sequence[WantedMove] = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """``decided`` is what is to be done about it, if somebody wants more than to know."""

    trials: Trials
    decided: Decided | None = None


class Decider:
    """The framework of the present choice, and its memory, which outlives the choice."""

    def __init__(self, limit: int, rng: Random, timer: Timer = time.perf_counter) -> None:
        self._limit, self._rng, self._timer = limit, rng, timer
        self._choice, self._framework = BalancingChoice(), Framework(None, None)
        self._memory = Memory()
        self._brokers: tuple[str, ...] = ()
        self._since_s = 0.0

    def decide(self, choice: BalancingChoice, sight: Sight, now_s: float) -> Decided:
        """What the framework says of ``sight``; ``now_s`` never goes back."""
        self._choose(choice)
        if not sight.capacities:
            return Decided(Decision(sight.at, Action.NOTHING, Waits.NO_BROKER))
        started, framework = self._timer(), self._framework
        snapshot = sight.snapshot(framework.rest_s)
        loads = LoadModel(snapshot, sight.heading(snapshot)).loads
        if self._is_gathering(snapshot, loads, now_s):
            return Decided(Decision(sight.at, Action.NOTHING, Waits.GATHERING, users=snapshot.n))
        verdict, self._memory = framework.decide(snapshot, self._memory, self._rng, now_s, loads)
        return _decided(sight.at, snapshot, verdict, 1000 * (self._timer() - started))

    def compare(self, choice: BalancingChoice, policies: Sequence[PolicyChoice], sight: Sight, now_s: float) -> Tried:
        """What each of ``policies`` would do now, however many moves that takes: nothing is done.

        ``choice`` is in force, and says for how long users rest.
        """
        snapshot = self._seen(choice, sight)
        found = [self._tried(one, snapshot, now_s, snapshot.n) for one in policies]
        return Tried(_trials(snapshot, found))

    def ask(self, choice: BalancingChoice, policy: PolicyChoice, sight: Sight, now_s: float) -> Tried:
        """What ``policy`` does now, whatever the framework's thresholds are; it may not raise the maximum either."""
        snapshot = self._seen(choice, sight)
        plan, milliseconds = self._tried(policy, snapshot, now_s, self._limit)
        is_wanted = plan.status is not Status.DISCARDED and len(plan) > 0
        if is_wanted:
            self._memory = self._memory.planned(now_s)
        action = Action.NOTHING
        if is_wanted:
            action = Action.SHUFFLE if policy.name in SHUFFLES else Action.MIGRATE
        discarded = (plan,) if plan.status is Status.DISCARDED else ()
        before = plan.before
        made = plan if is_wanted else None
        verdict = Verdict(action, plan.reason, before.mean, before.cov, made, discarded, plan.rejected)
        return Tried(
            _trials(snapshot, [(plan, milliseconds)]),
            _decided(sight.at, snapshot, verdict, milliseconds, is_asked=True),
        )

    def _choose(self, choice: BalancingChoice) -> None:
        if choice != self._choice:
            self._framework = framework_of(choice, self._limit)
            self._choice = choice

    def _is_gathering(self, snapshot: Snapshot, loads: Floats, now_s: float) -> bool:
        """Until these brokers have been seen for a window, what comes in a burst cannot be told from what stays."""
        if snapshot.brokers != self._brokers:
            self._brokers, self._since_s = snapshot.brokers, now_s
        framework = self._framework
        if now_s - self._since_s >= framework.window_s:
            return False
        self._memory = self._memory.observed(snapshot, loads, now_s, framework.window_s, framework.trend_s)
        return True

    def _seen(self, choice: BalancingChoice, sight: Sight) -> Snapshot:
        self._choose(choice)
        if not sight.capacities:
            raise Unavailable("no broker lives among which users could be balanced")
        return sight.snapshot(self._framework.rest_s)

    def _tried(self, policy: PolicyChoice, snapshot: Snapshot, now_s: float, limit: int) -> tuple[Plan, float]:
        made = bounded(policy, limit)
        started = self._timer()
        plan = replace(made.plan(snapshot, self._rng, now_s), policy=policy.name)
        milliseconds = 1000 * (self._timer() - started)
        if plan.after.maximum > plan.before.maximum:
            plan = replace(plan, status=Status.DISCARDED, reason=Reason.RAISES_MAXIMUM)
        return plan, milliseconds


def _decided(at: float, snapshot: Snapshot, verdict: Verdict, milliseconds: float, is_asked: bool = False) -> Decided:
    plan = verdict.plan
    decision = Decision(
        at,
        verdict.action,
        verdict.reason,
        is_asked,
        verdict.mean,
        verdict.cov,
        snapshot.n,
        rejected=_counted(verdict.rejected),
        discarded=[Discarded(one.policy, one.reason, len(one), _figures(one.after)) for one in verdict.discarded],
        milliseconds=milliseconds,
    )
    return Decided(decision) if plan is None else Decided(_with_plan(decision, plan), _wanted(plan))


def _with_plan(decision: Decision, plan: Plan) -> Decision:
    return msgspec.structs.replace(
        decision,
        policy=plan.policy,
        moves=len(plan),
        before=_figures(plan.before),
        after=_figures(plan.after),
    )


def _wanted(plan: Plan) -> list[WantedMove]:
    return [
        WantedMove(m.subscriber, m.target, f"{plan.policy}: {m.reason}", m.source, _expected(m)) for m in plan.moves()
    ]


def _expected(move: Move) -> Expected:
    loads = (move.source_before, move.source_after, move.target_before, move.target_after)
    return Expected(*loads, move.maximum, move.cov)


def _trials(snapshot: Snapshot, plans: Sequence[tuple[Plan, float]]) -> Trials:
    return Trials(
        snapshot.m,
        snapshot.n,
        snapshot.q,
        int(snapshot.pinned.sum()),
        _figures(plans[0][0].before),
        [_trial(plan, milliseconds) for plan, milliseconds in plans],
    )


def _trial(plan: Plan, milliseconds: float) -> Trial:
    return Trial(
        plan.policy, plan.status, plan.reason, len(plan), _figures(plan.after), _counted(plan.rejected), milliseconds
    )  # fmt: skip


def _counted(rejected: Mapping[Reason, int]) -> dict[str, int]:
    return {str(reason): count for reason, count in rejected.items()}


def _figures(summary: Summary) -> Figures:
    return Figures(summary.maximum, summary.ratio, summary.mean, summary.cov, summary.total)
