"""How good balancing plans are and how long they take, every policy against the lower bound and against the paper's.

    python benchmarks/balancing.py [--quick]

Worlds are generated (``balancing_worlds.py``): dense, where brokers share nearly everything, and communities, both
with a start as skewed as nearest placement makes it; 10,000 to a million subscribers with 20 subscriptions each, 10
and 100 brokers (quick: 100,000 and 10). The long form has two more of 10,000 and 10, where few share a subscription.
Every policy gets the same snapshot in the same process, compiled, on one thread; the policies of a case take turns, and
the least CPU time of three turns counts (of one, above ten million pairs of subscriber and broker). Small worlds are
compared with the optimum that OR-tools proves. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

import balancing_worlds as worlds
import numpy as np
from balancing_optimum import optimum
from rich.console import Console
from rich.table import Table

from tocsin.policies.multistage.bounds import lower_bound, spectral_bound
from tocsin.policies.multistage.gmove import Gmove
from tocsin.policies.multistage.gsh import Gsh
from tocsin.policies.multistage.ldm import Ldm
from tocsin.policies.multistage.plan import BalancingPolicy, Plan
from tocsin.policies.multistage.sdm import Sdm
from tocsin.policies.multistage.simsh import Simsh
from tocsin.policies.multistage.snapshot import Snapshot
from tocsin.policies.multistage.xbal import Xbal

POLICIES: dict[str, BalancingPolicy] = {
    "gsh": Gsh(),
    "ldm": Ldm(0.001),
    "sdm": Sdm(0.001),
    "xbal": Xbal(0.001),
    "simsh": Simsh(),
    "simsh warm": Simsh(warm=True),
    "gmove": Gmove(0.001),
}
SHARED_BY_FEW = {"uniform, 10,000 x 10": worlds.sparse, "communities near their brokers": worlds.settled}
SOLVER_S = {True: 5.0, False: 20.0}
SMALL = {True: 4, False: 12}  # seeds for each kind of small world
MOST_CERTIFIED = 100_000
console = Console(width=120)


@dataclass(frozen=True)
class Result:
    plan: Plan
    time_s: float  # CPU of the one thread that plans; others use this machine too


def main() -> None:
    quick = _arguments().quick
    dense, community = _scale(quick)
    keys = {
        "shuffle_max_over_bound": community["simsh"].plan.after.ratio,
        "shuffle_total_vs_gsh": community["simsh"].plan.after.total / community["gsh"].plan.after.total,
        "shuffle_time_vs_gsh": community["simsh"].time_s / community["gsh"].time_s,
        "rebalance_moves_vs_gsh": _moves_at_equal_cov(range(3 if quick else 8)),
        "plan_1m_vs_gsh": dense["xbal"].time_s / dense["gsh"].time_s,
        "small_vs_optimum": _against_optimum(quick),
    }
    print(json.dumps({name: round(value, 4) for name, value in keys.items()}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 subscribers on 10 brokers only")
    return parser.parse_args()


def _scale(quick: bool) -> tuple[dict[str, Result], dict[str, Result]]:
    """Results of the largest cases with 10 brokers, dense and community."""
    sizes = (100_000,) if quick else (10_000, 100_000, 1_000_000)
    last: dict[str, dict[str, Result]] = {}
    for name, make in () if quick else SHARED_BY_FEW.items():
        _case(name, make(0), rounds=3)
    for n in sizes:
        for m in (10,) if quick else (100, 10):
            for name, make in (("dense", worlds.dense), ("community", worlds.community)):
                last[name] = _case(f"{name}, {n:,} x {m}", make(0, n, m), rounds=3 if n * m <= 10_000_000 else 1)
    return last["dense"], last["community"]


def _case(title: str, snapshot: Snapshot, rounds: int) -> dict[str, Result]:
    results = {name: _timed(policy, snapshot) for name, policy in POLICIES.items() if _practical(name, snapshot)}
    for _ in range(rounds - 1):
        for name in results:
            again = _timed(POLICIES[name], snapshot)
            if again.time_s < results[name].time_s:
                results[name] = again
    _show(title + _certificate(snapshot), results)
    return results


def _certificate(snapshot: Snapshot) -> str:
    """How much of what lies above the bound of every plan nobody could take away, where one can tell soon."""
    if snapshot.n > MOST_CERTIFIED:
        return ""
    return f"; no maximum below {max(1.0, spectral_bound(snapshot) / lower_bound(snapshot)):.3f} is possible"


def _practical(name: str, snapshot: Snapshot) -> bool:
    """A group move with a hundred brokers and a million subscribers takes minutes."""
    return name != "gmove" or snapshot.n * snapshot.m <= 10_000_000


def _timed(policy: BalancingPolicy, snapshot: Snapshot, seed: int = 0) -> Result:
    began = time.thread_time()
    plan = policy.plan(snapshot, Random(seed), 0.0)
    return Result(plan, time.thread_time() - began)


def _show(title: str, results: dict[str, Result]) -> None:
    table = Table(title=title)
    for column in ("policy", "status", "max / bound", "max / gsh", "total / gsh", "cov", "moves", "ms", "time / gsh"):
        table.add_column(column, justify="left" if column in ("policy", "status") else "right")
    reference = results["gsh"]
    for name, result in results.items():
        after, base = result.plan.after, reference.plan.after
        figures = (f"{after.ratio:.3f}", f"{after.maximum / base.maximum:.3f}", f"{after.total / base.total:.3f}")
        times = (f"{1000 * result.time_s:,.1f}", f"{result.time_s / reference.time_s:.1f}")
        table.add_row(name, result.plan.status, *figures, f"{after.cov:.1e}", f"{len(result.plan):,}", *times)
    console.print(table)


def _moves_at_equal_cov(seeds: range) -> float:
    """XBAL's moves over GSH's, to a cov no higher than GSH's, in the paper's setting."""
    shares = []
    for seed in seeds:
        snapshot = worlds.paper(seed)
        shuffled = Gsh().plan(snapshot, Random(seed), 0.0)
        repaired = Xbal(shuffled.after.cov, least_gain=1e-13).plan(snapshot, Random(seed), 0.0)
        if repaired.after.cov > shuffled.after.cov:
            console.print(f"seed {seed}: XBAL stopped at cov {repaired.after.cov:.1e}, GSH at {shuffled.after.cov:.1e}")
            return float("inf")
        shares.append(len(repaired) / len(shuffled))
    console.print(f"paper's setting: XBAL needs {statistics.mean(shares):.3f} of GSH's moves for its cov or less")
    return statistics.mean(shares)


def _against_optimum(quick: bool) -> float:
    """Mean ratio of SIMSH, best of 20, to the optimum, over the small worlds where it was proved."""
    ratios, tried = [], 0
    for snapshot in _small_worlds(SMALL[quick]):
        reached = Simsh(restarts=20).plan(snapshot, Random(tried), 0.0).after.maximum
        least, tried = optimum(snapshot, reached, SOLVER_S[quick]), tried + 1
        if least is not None:
            ratios.append(reached / least)
    console.print(f"small worlds: {len(ratios)} of {tried} proved, worst ratio {max(ratios):.3f}")
    return statistics.mean(ratios)


def _small_worlds(seeds: int) -> Iterator[Snapshot]:
    kinds: tuple[Callable[[int], Snapshot], ...] = (
        lambda seed: worlds.small(seed, 20, 3, 15),
        lambda seed: worlds.small(seed, 14, 3, 28),
        lambda seed: worlds.small(seed, 18, 3, 24, communities=4),
    )
    for make in kinds:
        for seed in range(seeds):
            snapshot = make(seed)
            yield replace(snapshot, rates=np.round(snapshot.rates / 1000))


if __name__ == "__main__":
    main()
