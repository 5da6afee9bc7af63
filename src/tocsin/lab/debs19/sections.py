"""What sections 3, 5 and 6.2 say without a figure, drawn in one: sharing, waiting, placements, steps, migrations that
take time. The claims are those of ``others``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin.lab import drawing
from tocsin.lab.debs19 import measures, others
from tocsin.lab.debs19.measures import each
from tocsin.lab.debs19.schemes import MB, SETTLED_S, Runs
from tocsin.lab.trace import Trace
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.plan import BalancingPolicy
from tocsin.policies.multistage.sdm import Sdm

COLUMNS = ("section", "scheme", "seed", "at", "measure", "value")
STEPPED: Mapping[str, BalancingPolicy] = {"LDM": Ldm(0.01), "SDM": Sdm(0.01)}
COURSES = {
    "GSH, no time": "sim GSH",
    f"GSH, {others.MOVES_PER_S} a second": "sim GSH slow",
    f"LDM, {others.MOVES_PER_S} a second": "sim LDM slow",
}


@dataclass(frozen=True, slots=True)
class Bars:
    """A number of each run, by what the bar is called."""

    section: str
    title: str
    unit: str
    labels: Mapping[str, str]
    of: Callable[[Trace], float]


BARS = (
    Bars(
        *("3.1", "load of the heaviest broker", "MB/s"),
        {"shared": "sim No LB", "not shared": "sim No LB unshared"},
        lambda trace: measures.maximum(trace) / MB,
    ),
    Bars(
        *("3.2", "how long a byte waits", "seconds"),
        {"NR, no balancing": "sim No LB queued", "NR + GSH": "sim GSH queued"},
        lambda trace: trace.delay_s(SETTLED_S),
    ),
    Bars(
        *("5.1", "placements alone", "cov"),
        {"RND": "sim RND alone", "RR": "sim RR alone", "NR": "sim No LB", "LL": "sim LL alone"},
        measures.cov,
    ),
)


def draw(runs: Runs, out: Path) -> list[Path]:
    figure, axes = drawing.canvas(2, 3, "What the multistage paper says without a figure, simulated")
    for at, bars in zip(axes[0], BARS, strict=True):
        samples = [each(bars.of, runs[label]) for label in bars.labels.values()]
        drawing.bars(at, list(bars.labels), samples, f"{bars.section} · {bars.title}", bars.unit)
    drawing.loads(axes[1][0], runs["sim LL alone"][0], MB, "MB/s", "5.1 · least loaded, taken literally")
    _steps(axes[1][1])
    _courses(axes[1][2], runs)
    told = drawing.of_seeds(len(runs["sim GSH"]), courses=True, bars=True)
    drawing.caption(figure, told, f"Least loaded: {drawing.COURSES[0].lower()}{drawing.COURSES[1:]}")
    numbers = drawing.table(out / "sections.csv", COLUMNS, _rows(runs))
    return [drawing.save(figure, out / "sections.png"), numbers]


def _steps(axes: drawing.Axes) -> None:
    for colour, style, (name, policy) in zip(drawing.COLOURS, ("-", (0, (4, 3))), STEPPED.items(), strict=False):
        axes.plot(_heights(policy), color=colour, ls=style, lw=1.6, label=name)
    drawing.heading(axes, "5.2 · heaviest broker, step by step")
    axes.set(xlabel="migrations of one plan", ylabel="MB/s", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8, labelcolor=drawing.INK)


def _heights(policy: BalancingPolicy) -> list[float]:
    """The highest load before the first move and after each, in MB/s; rates of that world are KB/s."""
    plan = others.stepped(policy)
    return [height / 1000 for height in (plan.before.maximum, *(move.maximum for move in plan.moves()))]


def _courses(axes: drawing.Axes, runs: Runs) -> None:
    for colour, (name, label) in zip(drawing.COLOURS, COURSES.items(), strict=False):
        covs = runs[label][0].covs()
        axes.plot(np.arange(1, len(covs) + 1) / 60, covs, color=colour, lw=1.3, label=name)
    drawing.heading(axes, "6.2.2 · when a migration takes time")
    axes.set(xlabel="minutes", ylabel="cov", xlim=(0, 30), ylim=(0, None))
    axes.legend(frameon=False, fontsize=8, labelcolor=drawing.INK)


def _rows(runs: Runs) -> Iterator[tuple[object, ...]]:
    for bars in BARS:
        for name, label in bars.labels.items():
            for seed, value in enumerate(each(bars.of, runs[label])):
                yield bars.section, name, seed, "", f"{bars.title}, {bars.unit}", round(value, 4)
    for j, load in enumerate(runs["sim LL alone"][0].loads[-1].tolist()):
        yield "5.1", "LL", 0, "end", f"load of broker {j}, MB/s", round(load / MB, 4)
    for name, policy in STEPPED.items():
        for step, height in enumerate(_heights(policy)):
            yield "5.2", name, 1, step, "load of the heaviest broker, MB/s", round(height, 4)
    for name, label in COURSES.items():
        check_s, covs = runs[label][0].check_s, runs[label][0].covs()
        for second in range(check_s, len(covs) + 1, check_s):
            yield "6.2.2", name, 0, second, "cov", round(float(covs[second - 1]), 5)
