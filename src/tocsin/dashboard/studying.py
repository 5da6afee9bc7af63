"""One study: a question as JSON on standard input, the answer on standard output."""

from __future__ import annotations

import sys
import time

import msgspec

from tocsin.dashboard.lab import SchemeShown, StudyAsked, StudyShown
from tocsin.lab.debs19.prototype import Prototype
from tocsin.lab.debs19.simulation import Simulation
from tocsin.lab.engine import Pace
from tocsin.lab.jobs import Job, Settings
from tocsin.lab.study import Scheme
from tocsin.lab.trace import Trace
from tocsin.policies.registry import balancing_policy, placement_policy

POINTS = 180  # of each curve


def answer(asked: StudyAsked) -> StudyShown:
    began = time.monotonic()
    pace = Pace(moves_per_s=asked.moves_per_s)
    shown = []
    for scheme in asked.schemes:
        made = Scheme(
            scheme.name, scheme.placement, migrate=scheme.migrate, migrate_options=_ends(scheme.migrate, asked.alpha),
            shuffle=scheme.shuffle, options={"alpha": str(asked.alpha)},
        )  # fmt: skip
        placement = placement_policy(made.placement, made.placement_options)
        shown.append(_shown(scheme.name, Job(_world(asked), placement, made.framework(), asked.seed, pace).run()))
    return StudyShown(shown, round(time.monotonic() - began, 2))


def _ends(migrate: str | None, alpha: float) -> dict[str, str]:
    """Migration ends where its policy says, and never above ``alpha``, where it starts."""
    stop_cov = getattr(balancing_policy(migrate, {}), "stop_cov", 0.0) if migrate else 0.0
    return {"stop_cov": str(alpha)} if stop_cov > alpha else {}


def _world(asked: StudyAsked) -> Settings:
    if asked.world == "prototype":
        return Prototype(subscribers=asked.subscribers, duration_s=asked.duration_s)
    shares = tuple(float(asked.brokers - at) for at in range(asked.brokers))
    return Simulation(
        brokers=asked.brokers, subscribers=asked.subscribers, duration_s=asked.duration_s, shares=shares
    )  # fmt: skip


def _shown(name: str, trace: Trace) -> SchemeShown:
    covs, loads = trace.covs(), trace.loads
    step = max(1, len(covs) // POINTS)
    half = len(covs) // 2
    return SchemeShown(
        name=name,
        minutes=[round((at + 1) / 60, 2) for at in range(0, len(covs), step)],
        cov=[round(float(value), 4) for value in covs[::step]],
        loads=[[round(float(value)) for value in loads[::step, broker]] for broker in range(loads.shape[1])],
        migrations=trace.migrations,
        plans=len(trace.plans()),
        mean_cov=round(float(covs[half:].mean()), 4),
        peak=round(float(loads.max())),
    )


def main() -> None:
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=StudyAsked)
    sys.stdout.buffer.write(msgspec.json.encode(answer(asked)))


if __name__ == "__main__":
    main()
