"""What a migration costs, as measured: time, and the bytes of every message that it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin.lab import drawing
from tocsin.live.notes import Notes


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians and 95th percentiles; ``whole_ms`` is from the plan to the end of the move, with waiting its turn."""

    moves: int
    ms: tuple[float, float]
    whole_ms: tuple[float, float]
    bytes: tuple[float, float]

    @classmethod
    def of(cls, runs: Sequence[Notes]) -> Cost | None:
        """None where nobody moved."""
        handovers = [handover for notes in runs for handover in notes.handovers]
        done = [move for notes in runs for move in notes.done]
        if not handovers or not done:
            return None
        return cls(
            len(handovers),
            _quantiles([1000 * handover.seconds for handover in handovers]),
            _quantiles([1000 * (move["ended_at"] - move["created_at"]) for move in done]),
            _quantiles([handover.bytes + handover.behind_bytes for handover in handovers]),
        )


def draw(runs: Sequence[Notes], out: Path) -> list[Path]:
    """Time against bytes of every migration, and the numbers."""
    columns = ("scheme", "subscriber", "subscriptions", "ms", "subscriber_bytes", "coordination_bytes")
    moved = [(notes.label, handover) for notes in runs for handover in notes.handovers]
    rows = (
        (label, one.user, one.subscriptions, round(1000 * one.seconds, 2), one.bytes, one.behind_bytes)
        for label, one in moved
    )
    table = drawing.table(out / "migrations.csv", columns, rows)
    cost = Cost.of(runs)
    if cost is None:
        return [table]
    figure, axes = drawing.canvas(1, 2, f"What a migration costs · {cost.moves:,} measured", size=(5.0, 3.4))
    _spread(axes[0][0], [1000 * one.seconds for _, one in moved], "from the broker's word to the new one's, ms", 0)
    axes[0][0].set_xscale("log")
    _by_subscriptions(axes[0][1], runs)
    return [drawing.save(figure, out / "migrations.png"), table]


def _spread(axes: drawing.Axes, values: Sequence[float], label: str, colour: int) -> None:
    """A histogram with its median."""
    edges = np.geomspace(max(min(values), 0.1), max(values) * 1.01, 40)
    middle = float(np.median(values))
    axes.hist(values, edges, color=drawing.COLOURS[colour], alpha=0.85)
    axes.axvline(middle, color=drawing.INK, lw=1.1, ls=(0, (4, 3)))
    axes.margins(y=0.14)
    axes.annotate(f"median {middle:,.0f} ms", (middle, 1), (-6, -3), xycoords=("data", "axes fraction"),
                  textcoords="offset points", va="top", ha="right", color=drawing.INK)  # fmt: skip
    drawing.heading(axes, "(1) time")
    axes.set(xlabel=label, ylabel="migrations")


def _by_subscriptions(axes: drawing.Axes, runs: Sequence[Notes]) -> None:
    handovers = [handover for notes in runs for handover in notes.handovers]
    counts = sorted({one.subscriptions for one in handovers})
    for at, (name, of) in enumerate((("subscriber", "bytes"), ("coordinator and brokers", "behind_bytes"))):
        means = [np.mean([getattr(one, of) for one in handovers if one.subscriptions == n]) / 1000 for n in counts]
        axes.plot(counts, means, color=drawing.COLOURS[at], marker="o", ms=3.5, lw=1.3, label=name)
    drawing.heading(axes, "(2) bytes")
    axes.set(xlabel="subscriptions of the subscriber", ylabel="KB a migration", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8, labelcolor=drawing.INK)


def _quantiles(values: Sequence[float]) -> tuple[float, float]:
    middle, high = np.percentile(values, (50, 95)).tolist()
    return middle, high
