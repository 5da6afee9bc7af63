"""Claims of the paper that no figure of it shows: least loaded placement, sharing, latency, what a step does.

Two of our own stand beside them: what becomes of the shuffle when a migration takes time, and placements alone. That a
migration is lightweight is not here: there are no connections to move, so it is held against the living system alone.
"""

from __future__ import annotations

from random import Random

import numpy as np

from tocsin.lab.claims import Claim
from tocsin.lab.debs19 import measures
from tocsin.lab.debs19.measures import mean
from tocsin.lab.debs19.schemes import MB, SETTLED_S, Runs, simulated
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.engine import Pace
from tocsin.lab.jobs import Job
from tocsin.lab.trace import Trace
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.load import LoadModel
from tocsin.policies.multistage.plan import BalancingPolicy, Plan
from tocsin.policies.multistage.sdm import Sdm
from tocsin.policies.multistage.snapshot import Snapshot

LIMIT_MB_S = 900
MOVES_PER_S = 20
BALANCED = 0.1  # cov; α of the LDM beside it is half of this
UNSHARED = Pace(sharing=False)
QUEUED = Pace(limit_bytes_s=LIMIT_MB_S * MB)
SLOW = Pace(moves_per_s=MOVES_PER_S)


def jobs() -> dict[str, Job]:
    alone = {f"sim {placed} alone": simulated("No LB", placement=placed) for placed in ("RND", "RR", "LL")}
    queued = {f"sim {name} queued": simulated(name, pace=QUEUED) for name in ("No LB", "GSH")}
    slow = {"sim LDM slow": simulated("LDM", 0.05, pace=SLOW), "sim GSH slow": simulated("GSH", pace=SLOW)}
    usual = {"sim No LB": simulated("No LB"), "sim GSH": simulated("GSH")}
    return alone | queued | slow | usual | {"sim No LB unshared": simulated("No LB", pace=UNSHARED)}


def claims(runs: Runs) -> list[Claim]:
    return [_sharing(runs), _latency(runs), _placements(runs), _least_loaded(runs), _steps(), _slowly(runs)]


def _sharing(runs: Runs) -> Claim:
    traces = runs["sim No LB"]
    frontend, backend = mean(lambda t: t.frontend, traces), mean(lambda t: t.backend, traces)
    on, off = ([mean(of, runs[f"sim No LB{how}"]) for of in (_fetched, measures.maximum)] for how in ("", " unshared"))
    return Claim(
        *("debs19", "3.1", "Backend subscriptions are far fewer than frontend ones, and sharing saves fetches"),
        "far smaller",
        f"{backend:,.0f} against {frontend:,.0f}; brokers fetch {100 * on[0]:.1f} % of what they send with sharing, "
        f"{100 * off[0]:.0f} % without; the heaviest carries {on[1] / MB:,.0f} and {off[1] / MB:,.0f} MB/s",
        backend < frontend / 10 and on[0] < off[0] / 10 and on[1] < off[1],
    )


def _fetched(trace: Trace) -> float:
    """For each byte that is sent."""
    return float(trace.received.sum() / trace.sent.sum())


def _latency(runs: Runs) -> Claim:
    none, even = (mean(lambda t: t.delay_s(SETTLED_S), runs[f"sim {name} queued"]) for name in ("No LB", "GSH"))
    return Claim(
        *("debs19", "3.2", "Skewed load raises the latency of delivery"),
        *(
            "longer latency at overloaded brokers",
            f"a byte waits {none:.0f} s unbalanced, {even:.1f} s balanced",
            none > 2 * even,
        ),
        f"Brokers that move {LIMIT_MB_S} MB/s and queue the rest, a number of ours; all channels execute in the same "
        "instants, hence the seconds of waiting when balanced.",
    )


def _placements(runs: Runs) -> Claim:
    covs = {placed: mean(measures.cov, runs[f"sim {placed} alone"]) for placed in ("RND", "RR")}
    nearest = mean(measures.cov, runs["sim No LB"])
    return Claim(
        *("debs19", "5.1", "Uniform interests: random and round robin placement are balanced, nearest is not"),
        "temporally balanced; skewed",
        f"cov {covs['RND']:.3f} (RND), {covs['RR']:.3f} (RR), {nearest:.3f} (NR)",
        max(covs.values()) < 0.05 and nearest > 0.3,
    )


def _least_loaded(runs: Runs) -> Claim:
    traces = runs["sim LL alone"]
    share = mean(lambda t: float(t.users[-1].max() / t.users[-1].sum()), traces)
    return Claim(
        *("debs19", "5.1", "Least loaded placement overwhelms the broker that many empty subscribers come to at once"),
        *(
            "one broker overwhelmed",
            f"{100 * share:.0f} % at one broker, cov {mean(measures.cov, traces):.2f}",
            share > 0.9,
        ),
        "Taken literally. Our least_loaded counts newcomers before they have load, and does not do this.",
    )


def _steps() -> Claim:
    kept = [steps_that_lower(policy) for policy in (Ldm(0.01), Sdm(0.01))]
    held, made = sum(part[0] for part in kept), sum(part[1] for part in kept)
    return Claim(
        *("debs19", "5.2", "Each migration lowers the maximum, or the number of brokers that have it"),
        *("always", f"{held:,} of {made:,} steps of LDM and SDM", held == made > 0),
        "Algorithm 1 as printed does not keep this (it may repeat moves for ever); with our rule of validity it holds "
        "while the heaviest broker has somebody to give. After that the next heaviest gives, which lowers neither, but "
        "the loads in falling order.",
    )


def steps_that_lower(policy: BalancingPolicy) -> tuple[int, int]:
    """Of a plan for 2,000 subscribers placed by nearest: steps that do, and steps.

    A plan has net moves. They are the steps where nobody moves twice, as here; nearer to balance some do, and then net
    moves made one by one need not lower anything.
    """
    plan = stepped(policy)
    model, held = LoadModel(plan.snapshot), 0
    for i, target in zip(plan.order.tolist(), plan.targets.tolist(), strict=True):
        before = _height(model)
        model.move(i, target)
        held += _height(model) < before
    return held, len(plan)


def stepped(policy: BalancingPolicy) -> Plan:
    """The plan that is looked at step by step; rates are KB/s, all the same."""
    world = Simulation(subscribers=2000).world(1)
    near = np.argmin(np.hypot(*(world.homes[:, None, :] - np.array(world.brokers)).T), axis=0)
    rates = Simulation().rate_kb_s * np.ones(world.q)
    snapshot = Snapshot(*world.rows(world.duration_s), rates, near, np.ones(world.m))
    return policy.plan(snapshot, Random(1), 0.0)


def _height(model: LoadModel) -> tuple[float, int]:
    top = round(model.maximum, 6)
    return top, int((np.round(model.levels, 6) == top).sum())


def _slowly(runs: Runs) -> Claim:
    taken = {how: mean(reconfigured_s, runs[f"sim {how}"]) for how in ("GSH", "GSH slow", "LDM slow")}
    moves = {how: mean(measures.migrations, runs[f"sim {how}"]) for how in ("GSH slow", "LDM slow")}
    return Claim(
        *("debs19", "6.2.2", "The shuffle reconfigures quickly"),
        "quickly; how long a migration takes is not stated",
        f"from the first plan until cov is below {BALANCED}: {taken['GSH']:.0f} s where migrations take no time; at "
        f"{MOVES_PER_S} a second GSH {taken['GSH slow']:.0f} s, LDM α = 0.05 {taken['LDM slow']:.0f} s",
        taken["GSH slow"] <= taken["LDM slow"],
        f"At a rate of ours, and loads measured over a minute. The shuffle is {moves['GSH slow']:,.0f} migrations, "
        f"which take {moves['GSH slow'] / MOVES_PER_S:.0f} s; LDM needs {moves['LDM slow']:,.0f} in all.",
    )


def reconfigured_s(trace: Trace) -> float:
    """From the first plan until the measured cov is down for good; to the end of the run if it never is."""
    above = np.flatnonzero(trace.covs() >= BALANCED)
    return float(max(0, above.max(initial=-1) + 1 - trace.plans()[0].at_s))
