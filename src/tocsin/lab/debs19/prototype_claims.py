"""What section 6.1.3 says of the prototype, beside figures 5 to 12 as simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tocsin.lab.claims import Claim
from tocsin.lab.debs19 import measures
from tocsin.lab.debs19.figures5to12 import ALONE, MIGRATED, PLACED, SHUFFLED, labels
from tocsin.lab.debs19.measures import mean
from tocsin.lab.debs19.schemes import Runs
from tocsin.lab.debs19.simulation import KB

FEW = 40  # a tenth of the subscribers
ALIKE = 0.05  # maximum loads that differ by less are similar


def claims(runs: Runs) -> list[Claim]:
    """Those for which the runs are there."""
    return [claim for part, needed in _PARTS if all(label in runs for label in needed) for claim in part(runs)]


def _size(runs: Runs) -> list[Claim]:
    traces = runs["NR No LB"]
    backend, frontend = mean(lambda t: t.backend, traces), mean(lambda t: t.frontend, traces)
    return [
        Claim(
            *("debs19", "6.1.2", "The prototype has about 600 backend and 2,200 frontend subscriptions"),
            *("600 and 2,200", f"{backend:.0f} and {frontend:,.0f}"),
            abs(backend - 600) < 60 and abs(frontend - 2200) < 220,
        )
    ]


def _shuffle_or_not(runs: Runs) -> list[Claim]:
    fired = {placed: mean(measures.shuffles, runs[f"{placed} LDM + GSH"]) for placed in ("RND", "NR")}
    covs = {placed: mean(measures.cov, runs[f"{placed} No LB"]) for placed in ("RND", "NR")}
    moves = [mean(measures.migrations, runs[f"RND {name}"]) for name in ("LDM", "SDM")]
    return [
        Claim(
            *("debs19", "6.1.3, fig. 5, 6", "Random placement is less skewed: few migrations, and no shuffle"),
            "a few, none",
            f"LDM {moves[0]:.0f}, SDM {moves[1]:.0f} migrations, {fired['RND']:.0f} shuffles; cov {covs['RND']:.3f}",
            fired["RND"] == 0 and max(moves) < FEW,
        ),
        Claim(
            *("debs19", "6.1.3, fig. 8, 9", "Nearest placement is extremely unbalanced and calls for the shuffle"),
            *("shuffle", f"cov {covs['NR']:.3f}, {fired['NR']:.1f} shuffles a run", fired["NR"] >= 1),
            "With brokers where we put them: the paper does not say where they stood, nor γ and θ.",
        ),
    ]


def _better(runs: Runs, placed: str, section: str, what: str) -> list[Claim]:
    cov, top = ([mean(of, runs[f"{placed} {name}"]) for name in ALONE] for of in (measures.cov, measures.maximum))
    return [
        Claim(
            *("debs19", section, f"Balancing lowers cov and maximum load under {what} ({placed})"),
            "lower",
            f"cov {cov[0]:.3f} → {cov[1]:.3f} (LDM), {cov[2]:.3f} (SDM); "
            f"maximum {top[0] / KB:.1f} → {top[1] / KB:.1f}, {top[2] / KB:.1f} KB/s",
            max(cov[1:]) < cov[0] and max(top[1:]) < top[0],
        )
    ]


def _similar(runs: Runs) -> list[Claim]:
    tops = {f"{p} {s}": mean(measures.maximum, runs[f"{p} {s}"]) for p in ("RND", "NR") for s in ("LDM", "SDM")}
    apart = max(abs(tops[f"{p} SDM"] / tops[f"{p} LDM"] - 1) for p in ("RND", "NR"))
    return [
        Claim(
            *("debs19", "6.1.3, fig. 6, 10", "SDM and LDM perform alike"),
            *("similar", f"maximum loads differ by {100 * apart:.1f} % at most", apart < ALIKE),
        )
    ]


def _by_placement(runs: Runs) -> list[Claim]:
    moves = {s: [mean(measures.migrations, runs[f"{p} {s}"]) for p in PLACED] for s in ("LDM", "SDM")}
    told = "; ".join(f"{s} {', '.join(f'{x:.0f}' for x in counts)}" for s, counts in moves.items())
    return [
        Claim(
            *("debs19", "6.1.3, fig. 12", "NR needs many more migrations than RR and RND, with LDM and with SDM"),
            *(
                "much higher",
                f"{told} (RND, RR, NR)",
                all(counts[2] > 3 * max(counts[:2]) for counts in moves.values()),
            ),
        )
    ]


def _shuffle_early(runs: Runs) -> list[Claim]:
    alone = mean(measures.migrations, runs["NR LDM"])
    later = mean(measures.without_shuffle, runs["NR LDM + GSH"])
    everything = mean(measures.migrations, runs["NR LDM + GSH"])
    more = [mean(measures.maximum, runs[f"NR {s}"]) / mean(measures.maximum, runs[f"NR {s[:3]}"]) - 1 for s in SHUFFLED]
    return [
        Claim(
            *("debs19", "6.1.3, fig. 9, 11", "An early shuffle spares migrations later"),
            *("fewer", f"{later:.0f} after the shuffle, {alone:.0f} with LDM alone", later < alone),
            f"With the shuffle's own moves it is {everything:.0f} in all: the shuffle costs more than it spares.",
        ),
        Claim(
            *("debs19", "6.1.3, fig. 11", "In the prototype GSH brings little beyond migration alone"),
            "not much",
            f"maximum {compared(more[0])} than LDM's, {compared(more[1])} than SDM's",
            max(map(abs, more)) < ALIKE,
        ),
    ]


def compared(more: float) -> str:
    """``12.0 % higher`` of 0.12."""
    return f"{100 * abs(more):.1f} % {'higher' if more > 0 else 'lower'}"


_Part = Callable[[Runs], list[Claim]]
_PARTS: tuple[tuple[_Part, Sequence[str]], ...] = (
    (_size, ("NR No LB",)),
    (_shuffle_or_not, ("RND No LB", "RND LDM", "RND SDM", "RND LDM + GSH", "NR No LB", "NR LDM + GSH")),
    (lambda runs: _better(runs, "RND", "6.1.3, fig. 6", "even a slight imbalance"), labels(6)),
    (lambda runs: _better(runs, "RR", "6.1.3, fig. 7", "round robin placement"), labels(7)),
    (lambda runs: _better(runs, "NR", "6.1.3, fig. 10", "extreme imbalance"), labels(10)),
    (_similar, [f"{placed} {name}" for placed in ("RND", "NR") for name in MIGRATED]),
    (_by_placement, labels(12)),
    (_shuffle_early, ["NR LDM", "NR SDM", *labels(9)]),
)
