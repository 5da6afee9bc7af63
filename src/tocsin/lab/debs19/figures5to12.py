"""Figures 5 to 12: the prototype's comparison of placements and schemes, in simulation.

============  =================================================================================
5, 7, 8       loads over time: RND, RR, NR; each without balancing, with LDM, with SDM
9             NR with LDM + GSH and with SDM + GSH
6, 10, 11     maximum load, cov, migrations: RND; NR; NR with GSH
12            migrations of LDM and SDM by placement
============  =================================================================================

Runs of the living system are drawn in the same form, above the simulated ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tocsin.lab import drawing
from tocsin.lab.debs19 import measures
from tocsin.lab.debs19.measures import each
from tocsin.lab.debs19.prototype import REPORTS
from tocsin.lab.debs19.schemes import Runs, prototyped
from tocsin.lab.debs19.simulation import KB
from tocsin.lab.jobs import Job

PLACED = ("RND", "RR", "NR")
ALONE = ("No LB", "LDM", "SDM")
MIGRATED = ("LDM", "SDM")
SHUFFLED = ("LDM + GSH", "SDM + GSH")
OVER_TIME = {5: ("RND", ALONE), 7: ("RR", ALONE), 8: ("NR", ALONE), 9: ("NR", SHUFFLED)}
COMPARED = {6: ("RND", ALONE), 10: ("NR", ALONE), 11: ("NR", ("No LB", *SHUFFLED))}
NUMBERS = tuple(range(5, 13))


@dataclass(frozen=True, slots=True)
class Rows:
    """Runs by what their row of panels is called, and what is said below all of them."""

    runs: Mapping[str, Runs]
    told: str = ""

    def canvas(self, columns: int, title: str, *, bars: bool = True, **options: Any) -> Any:
        figure, axes = drawing.canvas(len(self.runs), columns, title, **options)
        seeds = len(next(iter(next(iter(self.runs.values())).values())))
        shown = drawing.of_seeds(seeds, courses=not bars, bars=bars)
        drawing.caption(figure, shown if bars else f"{drawing.COURSES} {shown}", self.told)
        return figure, axes

    def across(self, axes: Any) -> Iterator[tuple[Any, str, Runs]]:
        """The axes of each row, what it is called, its runs."""
        for row, (kind, runs) in zip(axes, self.runs.items(), strict=True):
            yield row, kind, runs


def jobs(reports: int = REPORTS) -> dict[str, Job]:
    names = (*ALONE, *SHUFFLED)
    return {f"{placed} {name}": prototyped(name, placed, reports) for placed in PLACED for name in names}


def labels(number: int) -> list[str]:
    """The runs that a figure shows."""
    if number == 12:
        return [f"{placed} {name}" for placed in PLACED for name in MIGRATED]
    placed, names = (OVER_TIME | COMPARED)[number]
    return [f"{placed} {name}" for name in names]


def draw(
    runs: Runs, out: Path, numbers: tuple[int, ...] = NUMBERS, beside: Runs | None = None, told: str = ""
) -> list[Path]:
    """``beside`` are simulated runs, to be drawn below those that were measured, as ``told``."""
    rows = Rows({"": runs} if beside is None else {"live": runs, "simulated": beside}, told)
    paths = [_over_time(number, rows, out) for number in numbers if number in OVER_TIME]
    paths += [_compared(number, rows, out) for number in numbers if number in COMPARED]
    if 12 in numbers:
        paths.append(_migrations(rows, out))
    return [*paths, _loads_table(runs, out), _summary_table(runs, out)]


def _over_time(number: int, rows: Rows, out: Path) -> Path:
    placed, names = OVER_TIME[number]
    title = f"Figure {number} · loads of 5 brokers, 400 subscribers, {placed} placement"
    figure, axes = rows.canvas(len(names), title, bars=False, sharey="row")
    for across, kind, runs in rows.across(axes):
        for at, name in enumerate(names):
            trace = runs[f"{placed} {name}"][0]
            heading = f"({at + 1}) {_called(kind, f'{placed} + {name}')}, {trace.migrations:,} migrations"
            drawing.loads(across[at], trace, KB, "KB/s" if at == 0 else "", heading)
    return drawing.save(figure, out / f"figure{number:02d}.png")


def _compared(number: int, rows: Rows, out: Path) -> Path:
    placed, names = COMPARED[number]
    columns = 4 if number == 11 else 3
    title = f"Figure {number} · {placed} placement, 8th to 30th minute"
    figure, axes = rows.canvas(columns, title, size=(3.8, 3.1))
    for across, kind, runs in rows.across(axes):
        traces = [runs[f"{placed} {name}"] for name in names]
        highest = [[load / KB for load in each(measures.maximum, seeds)] for seeds in traces]
        drawing.bars(across[0], names, highest, f"(1) {_called(kind, 'maximum broker load')}", "KB/s")
        drawing.bars(across[1], names, [each(measures.cov, seeds) for seeds in traces], "(2) cov", "cov")
        moves = [each(measures.migrations, seeds) for seeds in traces]
        drawing.bars(across[2], names, moves, "(3) migrations", "subscribers moved")
        if number == 11:
            later = [each(measures.without_shuffle, seeds) for seeds in traces]
            drawing.bars(across[3], names, later, "migrations without the shuffle's own", "subscribers moved")
    return drawing.save(figure, out / f"figure{number:02d}.png")


def _migrations(rows: Rows, out: Path) -> Path:
    figure, axes = rows.canvas(2, "Figure 12 · migrations by initial placement")
    for across, kind, runs in rows.across(axes):
        for at, name in enumerate(MIGRATED):
            moves = [each(measures.migrations, runs[f"{placed} {name}"]) for placed in PLACED]
            drawing.bars(across[at], PLACED, moves, f"({at + 1}) {_called(kind, name)}", "subscribers moved")
    return drawing.save(figure, out / "figure12.png")


def _called(kind: str, what: str) -> str:
    return f"{kind}: {what}" if kind else what


def _loads_table(runs: Runs, out: Path) -> Path:
    rows = (
        (label, check * trace.check_s, j, round(load / KB, 3))
        for label, traces in runs.items()
        if label.split()[0] in PLACED
        for trace in traces[:1]
        for check in range(1, len(trace.users) + 1)
        for j, load in enumerate(trace.loads[check * trace.check_s - 1])
    )
    return drawing.table(out / "figures05-09.csv", ("scheme", "second", "broker", "kb_s"), rows)


def _summary_table(runs: Runs, out: Path) -> Path:
    rows = (
        (
            *(label, seed, round(measures.maximum(trace) / KB, 3), round(measures.peak(trace) / KB, 3)),
            *(round(measures.cov(trace), 4), trace.migrations, int(measures.without_shuffle(trace))),
        )
        for label, traces in runs.items()
        if label.split()[0] in PLACED
        for seed, trace in enumerate(traces)
    )
    columns = ("scheme", "seed", "maximum_kb_s", "peak_kb_s", "cov", "migrations", "migrations_without_shuffle")
    return drawing.table(out / "figures06-12.csv", columns, rows)
