"""Least loaded (LL; section 5.1).

The paper warns that many newcomers at once all land on the broker that was least loaded a moment ago, and
overwhelm it when they start to subscribe. So a newcomer counts from the moment it is placed: as
``newcomer_weight`` average users, until the broker's next report has it in its load.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.base import Assign, BrokerView, Decision, Newcomer, PlacementView, Reason, Skip, usual_capacity
from tocsin.policies.checks import at_least


@dataclass(frozen=True, slots=True)
class LeastLoaded:
    """By load over capacity; ties, which the paper leaves open, go to the fewest users, then to the first name.

    0 as ``newcomer_weight`` is the paper's policy but for ties: before anyone has load, all still spread. The policy
    taken literally, which sends them all to one, is in the lab.
    """

    newcomer_weight: float = 1.0

    def __post_init__(self) -> None:
        at_least("newcomer_weight", self.newcomer_weight, 0)

    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        if not view.brokers:
            return Skip(who.user, Reason.NO_CANDIDATE)
        average = _load_per_user(view) * self.newcomer_weight
        usual = usual_capacity(b.capacity for b in view.brokers)
        chosen = min(view.brokers, key=lambda b: (_expected(b, average) / (b.capacity or usual), b.users, b.name))
        return Assign(who.user, chosen.name, Reason.LEAST_LOADED)


def _expected(broker: BrokerView, average: float) -> float:
    return broker.load + broker.newcomers * average


def _load_per_user(view: PlacementView) -> float:
    """Before anyone has load, every user counts the same."""
    users = sum(b.users - b.newcomers for b in view.brokers)
    load = sum(b.load for b in view.brokers)
    return load / users if users > 0 and load > 0 else 1.0
