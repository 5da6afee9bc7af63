"""All runs that the figures need, one after the other on one system; then figures, tables and claims."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tocsin.errors import BadArgument
from tocsin.lab.debs19 import figures5to12
from tocsin.lab.debs19 import run as simulated
from tocsin.lab.debs19.run import Reproduced
from tocsin.live import cost, held
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes
from tocsin.live.stage import Stage
from tocsin.live.world import World
from tocsin.scenarios.city import Timetable

NUMBERS = figures5to12.NUMBERS
EVERY = tuple(figures5to12.jobs())
WARM_UP, WARM_UP_PEOPLE = 1 / 12, 40  # of a run

Measured = dict[str, list[Notes]]
Tell = Callable[[str], None]


def labels_of(figures: Sequence[int]) -> tuple[str, ...]:
    """The runs for these figures; for all of them every placement with every scheme, whether one shows it or not."""
    if unknown := [number for number in figures if number not in NUMBERS]:
        raise BadArgument("figure", f"one of {', '.join(map(str, NUMBERS))}", unknown[0])
    return tuple(dict.fromkeys(x for n in figures for x in figures5to12.labels(n))) or EVERY


async def measure(
    experiment: Experiment, labels: Sequence[str], seeds: int = 1, beside: int = 1, tell: Tell = lambda line: None
) -> Measured:
    """Play every run, some of them ``beside`` each other. A seed has one city, whose events are made once."""
    found: Measured = {label: [] for label in labels}
    with tempfile.TemporaryDirectory(prefix="tocsin-live-", ignore_cleanup_errors=True) as root:
        world = World(Path(root), experiment, experiment.scenario(0).city.size_m, min(beside, len(labels)))
        try:
            tell(f"starting a cluster, {len(world.systems)} coordinators, {len(experiment.spots)} brokers each")
            await world.start(experiment.statements())
            before = await _warm_up(world, experiment)
            for seed in range(seeds):
                events = list(experiment.scenario(seed).events(experiment.run_s))
                for at in range(0, len(labels), len(world.systems)):
                    await before.clear()
                    before = Stage(world, experiment, events, labels[at : at + len(world.systems)])
                    for notes in await before.play():
                        found[notes.label].append(notes)
                        tell(_line(notes, experiment))
            await before.clear()
        finally:
            await world.stop()
    return found


async def _warm_up(world: World, experiment: Experiment) -> Stage:
    """A short run for a few people, so that Spark has compiled what it runs and nobody measures that."""
    part_s = experiment.city_s * WARM_UP / 5
    short = replace(
        experiment,
        subscribers=min(WARM_UP_PEOPLE, experiment.subscribers),
        reports=max(1, round(experiment.reports * WARM_UP)),
        minutes=experiment.minutes * WARM_UP,
        timetable=Timetable(login_s=part_s, subscribe_s=part_s),
    )
    stage = Stage(world, short, list(short.scenario(0).events(short.run_s)), ["RR No LB"])
    await stage.play()
    return stage


def reproduce(measured: Measured, experiment: Experiment, out: Path, figures: Sequence[int] = ()) -> Reproduced:
    """Draw what was measured beside what the simulator makes of it, and hold the paper's claims against it."""
    runs = {label: [notes.trace(experiment) for notes in seeds] for label, seeds in measured.items()}
    seeds = range(len(next(iter(measured.values()))))
    jobs = {label: job for label, job in figures5to12.jobs(experiment.reports).items() if label in runs}
    drawn, beside = out / "debs19-live", simulated.runs(jobs, seeds)
    files = figures5to12.draw(runs, drawn, tuple(figures) or NUMBERS, beside, f"Live: {experiment.told()}")
    files += cost.draw([notes for seeds in measured.values() for notes in seeds], drawn)
    whole = "debs19" if set(EVERY) <= set(runs) else None
    return Reproduced.written(out, held.claims(runs, measured, experiment), files, whole=whole, live=True)


def _line(notes: Notes, experiment: Experiment) -> str:
    trace = notes.trace(experiment)
    return (
        f"{notes.label:<14} {trace.loads[-1].mean() / 1000:6.1f} KB/s a broker, cov {trace.covs()[480:].mean():.3f}, "
        f"{trace.migrations:4} migrations, {notes.notifications:,} notifications"
    )
