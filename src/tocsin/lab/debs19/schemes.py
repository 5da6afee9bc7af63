"""The schemes that the paper compares, by the names it gives them.

The framework runs as Algorithm 1 has it, plus the settlements of its own docstring: no cool-down, no rest for who was
moved, any gain pays. Rates come averaged over the simulator's window, so it averages nothing itself.

What the paper does not state: γ = 0.3 everywhere; θ = β. The prototype's thresholds are α = 0.05 and β = θ = 30 KB/s,
about half the mean load of a broker once everybody has subscribed; its window is 60 s, its check every 10 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tocsin.lab.debs19.prototype import REPORTS, Prototype
from tocsin.lab.debs19.simulation import KB, Simulation
from tocsin.lab.engine import Pace
from tocsin.lab.jobs import Job
from tocsin.lab.trace import Trace
from tocsin.policies.base import Assign, Decision, Newcomer, PlacementPolicy, PlacementView, Reason
from tocsin.policies.multistage.framework import Framework
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.plan import BalancingPolicy
from tocsin.policies.multistage.sdm import Sdm
from tocsin.policies.placement.nearest import Nearest
from tocsin.policies.placement.random import RandomBroker
from tocsin.policies.placement.round_robin import RoundRobin

MB = 1000 * KB
GAMMA = 0.3
SIMULATED_BETA = 300 * MB
PROTOTYPE_ALPHA, PROTOTYPE_BETA = 0.05, 30 * KB
SETTLED_S = 480  # all have subscribed

Runs = Mapping[str, list[Trace]]


@dataclass(frozen=True, slots=True)
class LiteralLeastLoaded:
    """Least loaded as section 5.1 describes it: by the loads that brokers last told, and nothing else."""

    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        chosen = min(view.brokers, key=lambda broker: (broker.load, broker.name))
        return Assign(who.user, chosen.name, Reason.LEAST_LOADED)


PLACEMENTS: Mapping[str, PlacementPolicy] = {
    "RND": RandomBroker(),
    "RR": RoundRobin(),
    "NR": Nearest(),
    "LL": LiteralLeastLoaded(),
}


def as_printed(
    migrate: BalancingPolicy | None, shuffle: BalancingPolicy | None, alpha: float, beta: float
) -> Framework:
    """Algorithm 1 without what the product adds to it."""
    return Framework(
        *(migrate, shuffle, alpha, beta, GAMMA, beta),
        window_s=0.0,
        cooldown_s=0.0,
        rest_s=0.0,
        least_gain=0.0,
    )


def scheme(name: str, alpha: float, beta: float) -> Framework | None:
    """``No LB``, ``LDM``, ``SDM``, ``GSH``, or a migration with it: ``LDM + GSH``."""
    kinds: dict[str, BalancingPolicy] = {"LDM": Ldm(alpha), "SDM": Sdm(alpha)}
    if name == "No LB":
        return None
    migrate, _, shuffle = name.partition(" + ")
    return as_printed(kinds.get(migrate), Gsh() if "GSH" in (migrate, shuffle) else None, alpha, beta)


def simulated(
    name: str, alpha: float = 0.15, beta: float = SIMULATED_BETA, placement: str = "NR", pace: Pace | None = None
) -> Job:
    """A run of section 6.2, as seed 0 has it."""
    return Job(Simulation(), PLACEMENTS[placement], scheme(name, alpha, beta), 0, pace or Pace())


def prototyped(name: str, placement: str, reports: int = REPORTS) -> Job:
    """A run of section 6.1, as seed 0 has it; with fewer reports, β is lower as well."""
    beta = PROTOTYPE_BETA * reports / REPORTS
    return Job(Prototype(reports=reports), PLACEMENTS[placement], scheme(name, PROTOTYPE_ALPHA, beta), 0)
