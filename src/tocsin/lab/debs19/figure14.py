"""Figure 14: how α and β change cov and the number of migrations of LDM, beside the greedy shuffle."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from tocsin.lab import drawing
from tocsin.lab.claims import Claim
from tocsin.lab.debs19 import measures
from tocsin.lab.debs19.measures import each, mean
from tocsin.lab.debs19.schemes import MB, Runs, simulated
from tocsin.lab.jobs import Job

ALPHAS = (0.15, 0.05, 0.01, 0.005)
BETAS_MB = (600, 450, 300, 150, 50)
BY_ALPHA = {f"sim LDM {alpha:g}".replace(" 0.", " ."): alpha for alpha in ALPHAS}
BY_BETA = {"sim LDM .05" if beta == 300 else f"sim LDM .05 β {beta}": beta for beta in BETAS_MB}


def jobs() -> dict[str, Job]:
    alphas = {label: simulated("LDM", alpha) for label, alpha in BY_ALPHA.items()}
    betas = {label: simulated("LDM", 0.05, beta * MB) for label, beta in BY_BETA.items()}
    return alphas | betas | {"sim GSH": simulated("GSH")}


def draw(runs: Runs, out: Path) -> list[Path]:
    figure, axes = drawing.canvas(
        1, 3, "Figure 14 · thresholds of LDM: cov over time, and what it costs", size=(4.6, 3.6)
    )
    _over_time(axes[0][0], runs)
    alphas = [runs[label] for label in BY_ALPHA]
    names = [f"{alpha:g}" for alpha in ALPHAS]
    drawing.bars(
        axes[0][1], names, [each(measures.migrations, x) for x in alphas], "(2) by α, β = 300 MB/s", "migrations"
    )
    axes[0][1].set_xlabel("α")
    betas = [runs[label] for label in BY_BETA]
    names = [str(beta) for beta in BETAS_MB]
    drawing.bars(axes[0][2], names, [each(measures.migrations, x) for x in betas], "(2) by β, α = 0.05", "migrations")
    axes[0][2].set_xlabel("β, MB/s")
    drawing.caption(figure, drawing.of_seeds(len(runs["sim GSH"]), courses=True, bars=True))
    rows = (
        (
            *(label.removeprefix("sim "), seed, round(measures.cov(trace), 5), round(measures.maximum(trace) / MB, 2)),
            *(trace.migrations, len(trace.plans())),
        )
        for label in jobs()
        for seed, trace in enumerate(runs[label])
    )
    columns = ("scheme", "seed", "cov", "maximum_mb_s", "migrations", "plans")
    return [drawing.save(figure, out / "figure14.png"), drawing.table(out / "figure14.csv", columns, rows)]


def _over_time(axes: drawing.Axes, runs: Runs) -> None:
    shown = {"sim GSH": "GSH"} | {label: f"LDM α = {alpha:g}" for label, alpha in BY_ALPHA.items()}
    for colour, (label, name) in zip(drawing.COLOURS, shown.items(), strict=False):
        covs = runs[label][0].covs()
        axes.plot(np.arange(1, len(covs) + 1) / 60, covs, label=name, color=colour, lw=1.3)
    drawing.heading(axes, "(1) cov")
    axes.set(xlabel="minutes", ylabel="cov", yscale="log", xlim=(1, 30), ylim=(2e-3, 1))
    axes.legend(loc="upper right", ncols=2, frameon=False, fontsize=8, labelcolor=drawing.INK)


def claims(runs: Runs) -> list[Claim]:
    by_alpha = [mean(measures.migrations, runs[label]) for label in BY_ALPHA]
    by_beta = [mean(measures.migrations, runs[label]) for label in BY_BETA]
    covs = {label: mean(measures.cov, runs[label]) for label in ("sim LDM .05", "sim LDM .005", "sim GSH")}
    more = mean(measures.maximum, runs["sim LDM .05"]) / mean(measures.maximum, runs["sim GSH"]) - 1
    early = [mean(lambda t: float(t.covs()[60:].mean()), runs[label]) for label in BY_BETA]
    return [
        Claim(
            *("debs19", "6.2.2, fig. 14 (2)", "The smaller α, the more migrations"),
            *("more", _series(ALPHAS, by_alpha, "α"), all(a < b for a, b in pairwise(by_alpha))),
        ),
        Claim(
            *("debs19", "6.2.2, fig. 14 (2)", "The smaller β, the more migrations"),
            *("more", _series(BETAS_MB, by_beta, "β (MB/s)"), all(a < b for a, b in pairwise(by_beta))),
            f"It starts earlier: cov from the first minute on is {early[0]:.3f} at 600 MB/s, {early[-1]:.3f} at 50.",
        ),
        Claim(
            *("debs19", "6.2.2, fig. 14 (1)", "With α = 0.05 LDM is as good as GSH after a while"),
            "as good",
            f"cov {covs['sim LDM .05']:.4f} against {covs['sim GSH']:.4f}, maximum {100 * more:+.1f} %",
            covs["sim LDM .05"] <= 1.5 * covs["sim GSH"],
            f"To the eye only: LDM stops at cov = α. α = 0.005 does reach it (cov {covs['sim LDM .005']:.4f}).",
        ),
    ]


def _series(values: tuple[float, ...], counts: list[float], name: str) -> str:
    """``1,250, 1,650 for α 0.15, 0.05``."""
    return f"{', '.join(f'{count:,.0f}' for count in counts)} for {name} {', '.join(f'{value:g}' for value in values)}"
