"""How figures look: one palette, thin axes, labels that say their unit. Nothing is shown, all is written to files."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from tocsin.lab.trace import Trace

INK, GREY, GRID = "#22303c", "#7a8791", "#e6eaed"
COLOURS = ("#1b6ca8", "#e07a1f", "#3a9b5c", "#b23a48", "#7d5ba6", "#c9a227", "#4aa6b5", "#8c6d52", "#d46a9f", "#5f6b73")
STYLE: Any = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "figure.dpi": 110,
    "savefig.facecolor": "white",
}
COURSES = (
    "Each line is a broker, of the same colour in all panels; dashed: their mean; red ticks at the foot: "
    "seconds in which subscribers migrated."
)
Axes = Any


def canvas(rows: int, columns: int, title: str, *, size: tuple[float, float] = (4.2, 3.1), **options: Any) -> Any:
    """A figure and its axes as a table of ``rows`` × ``columns``."""
    with rc_context(STYLE):
        wide, high = size
        figure = Figure(figsize=(wide * columns, high * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
        figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=12, fontweight="bold")
        return figure, axes


def save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})
    return path


def caption(figure: Any, *lines: str) -> None:
    """What has to be known of all panels, below them and no wider."""
    letters = int(16 * figure.get_figwidth())
    told = "\n".join(textwrap.fill(line, letters) for line in lines if line)
    figure.supxlabel(told, x=0.01, ha="left", fontsize=8, color=GREY)


def of_seeds(seeds: int, *, courses: bool = False, bars: bool = False) -> str:
    """Which runs are shown, as courses over time or as bars."""
    if seeds == 1:
        return "One run, seed 0."
    told = [f"Over time: seed 0 of {seeds}."] if courses else []
    return " ".join([*told, *([f"Bars: means of {seeds} seeds, with the lowest and the highest."] if bars else [])])


def heading(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)


def loads(axes: Axes, trace: Trace, unit: float, label: str, title: str) -> None:
    """A line for each broker, the mean dashed, and a mark where a plan was carried out."""
    series = trace.loads / unit
    minutes = np.arange(1, len(series) + 1) / 60
    for j in range(series.shape[1]):
        axes.plot(minutes, series[:, j], color=COLOURS[j % len(COLOURS)], lw=1.3)
    axes.plot(minutes, series.mean(axis=1), color=INK, lw=1.1, ls=(0, (4, 3)))
    for at in np.flatnonzero(trace.moved):
        axes.axvline((at + 1) / 60, ymax=0.03, color=COLOURS[3], lw=1)
    heading(axes, title)
    top = max(axes.get_ylim()[1], 1.05 * float(series.max()))  # of all panels with one scale, as far as they are drawn
    axes.set(xlabel="minutes", ylabel=label, xlim=(0, minutes[-1]), ylim=(0, top))


def people(axes: Axes, trace: Trace, title: str) -> None:
    """Subscribers by broker over time."""
    minutes = np.arange(1, len(trace.users) + 1) * trace.check_s / 60
    for j in range(trace.users.shape[1]):
        axes.plot(minutes, trace.users[:, j], color=COLOURS[j % len(COLOURS)], lw=1.3)
    heading(axes, title)
    axes.set(xlabel="minutes", ylabel="subscribers", xlim=(0, minutes[-1]), ylim=(0, None))


def bars(axes: Axes, names: Sequence[str], samples: Sequence[Sequence[float]], title: str, label: str) -> None:
    """The mean of each sample with its extremes, and the number above."""
    means = [float(np.mean(values)) for values in samples]
    spread = [[m - min(v) for m, v in zip(means, samples, strict=True)]]
    spread += [[max(v) - m for m, v in zip(means, samples, strict=True)]]
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(names))]
    axes.bar(names, means, color=colours, width=0.62, yerr=spread if np.any(spread) else None, ecolor=INK, capsize=3)
    for at, mean in enumerate(means):
        text = f"{mean:,.0f}" if mean >= 10 or mean == 0 else f"{mean:.2g}"
        axes.annotate(text, (at, max(samples[at])), (0, 4), textcoords="offset points", ha="center", color=INK)
    heading(axes, title)
    axes.set_ylabel(label)
    axes.margins(y=0.16)
    axes.grid(visible=False, axis="x")


def table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """The numbers behind a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path
