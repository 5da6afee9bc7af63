"""The framework as the coordinator runs it: with the thresholds of a running system and plans of bounded length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tocsin.coordinator.choices import SHUFFLES, BalancingChoice, PolicyChoice
from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.plan import BalancingPolicy, Plan, Reason, Status, nothing
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.registry import balancing_framework, balancing_policy


@dataclass(frozen=True, slots=True)
class Bounded:
    """``policy`` with at most ``limit`` moves. Of a migration the first ones are made, and the next plan goes on from
    there; the first moves of a shuffle alone would make things worse, so that a longer one is not begun."""

    policy: BalancingPolicy
    limit: int
    is_shuffle: bool = False

    @property
    def stop_cov(self) -> float:
        """As the framework asks it of whoever migrates."""
        return 0.0 if self.is_shuffle else float(getattr(self.policy, "stop_cov", 0.0))

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        plan = self.policy.plan(snapshot, rng, now)
        if len(plan) <= self.limit:
            return plan
        if self.is_shuffle:
            return nothing(plan.policy, snapshot, Reason.MOVE_LIMIT)
        order, targets, reasons = (moves[: self.limit] for moves in (plan.order, plan.targets, plan.reasons))
        cut = replace(plan, status=Status.STALLED, reason=Reason.MOVE_LIMIT)
        return replace(cut, order=order, targets=targets, reasons=reasons)


def bounded(chosen: PolicyChoice, limit: int) -> Bounded:
    return Bounded(balancing_policy(chosen.name, chosen.options), limit, chosen.name in SHUFFLES)


def framework_of(choice: BalancingChoice, limit: int) -> Framework:
    """ConfigError says what of the choice cannot be."""
    migrate = bounded(choice.migrate, limit) if choice.migrate else None
    shuffle = bounded(choice.shuffle, limit) if choice.shuffle else None
    return balancing_framework(migrate, shuffle, choice.in_force.options)
