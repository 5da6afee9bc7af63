"""What a delivery costs the broker, beside Valkey (or Redis), NATS and Mosquitto on the same work in the same run.

    python benchmarks/fanout.py [--quick] [--only NAME,...]

Each server is one process on the first core, the generator is on the second; servers take turns, and the best of
several turns counts for each. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fanout_crowd import Crowd, most_subscribers
from fanout_servers import SERVERS, Running, Server, Tocsin, free_port
from rich.console import Console
from rich.table import Table

FEW, MANY, TOGETHER = 1_000, 10_000, 20
console = Console(width=120)


@dataclass(frozen=True, slots=True)
class Amounts:
    """How often everyone takes its turn, and how much is done in one."""

    turns: int
    single: int
    batched: int
    many: int
    load_turns: int
    load_s: float


FULL = Amounts(turns=20, single=60, batched=6, many=5, load_turns=6, load_s=4.0)
QUICK = Amounts(turns=6, single=40, batched=4, many=3, load_turns=3, load_s=1.5)


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    running: Running
    crowd: Crowd


@contextmanager
def contenders(only: set[str]) -> Iterator[list[Contender]]:
    """All servers that are installed, started, each with its crowd; says which are not."""
    first, *others = sorted(os.sched_getaffinity(0))
    with ExitStack() as stack:
        found = []
        for kind in SERVERS:
            server = kind()
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="tocsin-fanout-")))
            port = free_port()
            command = server.command(port, directory)
            if command is None:
                console.print(f"{server.name} is absent: it is not installed here")
            elif not only or server.name.lower() in only:
                os.sched_setaffinity(0, {first})  # the server inherits it
                running = Running(command, port)
                stack.callback(running.stop)
                os.sched_setaffinity(0, {*others} or {first})
                found.append(_joined(stack, server, running, others[0] if others else first))
        yield found


def _joined(stack: ExitStack, server: Server, running: Running, core: int) -> Contender:
    crowd = Crowd(server, running, core)
    stack.callback(crowd.stop)
    return Contender(server.name, running, crowd)


def best(found: list[Contender], turns: int, case: Callable[[Contender], float]) -> dict[str, float]:
    """The least of ``turns`` values of each, the servers taking turns."""
    values: dict[str, list[float]] = {c.name: [] for c in found}
    for _ in range(turns):
        for contender in found:
            values[contender.name].append(case(contender))
    return {name: min(of) for name, of in values.items()}


def growth(contender: Contender, subscribers: int) -> float:
    """Resident bytes for each further subscriber."""
    before = contender.running.resident_bytes()
    contender.crowd.grow(subscribers)
    return (contender.running.resident_bytes() - before) / (subscribers - FEW)


def measure(found: list[Contender], amounts: Amounts, many: int) -> dict[str, dict[str, float]]:
    """Everything, by case and server."""
    for contender in found:
        contender.crowd.grow(FEW)
    single = best(found, amounts.turns, lambda c: c.crowd.burst(amounts.single, 1))
    batched = best(found, amounts.turns, lambda c: c.crowd.burst(amounts.batched, TOGETHER))
    rates = {name: 0.5 / cost / FEW for name, cost in single.items()}

    def loaded(contender: Contender) -> float:
        rate = rates[contender.name]
        return contender.crowd.load(rate, max(1, int(rate * amounts.load_s)))

    p99 = best(found, amounts.load_turns, loaded)
    resident = {c.name: growth(c, many) for c in found}
    crowded = best(found, amounts.turns, lambda c: c.crowd.burst(amounts.many, 1))
    rate_of = {name: rate * FEW for name, rate in rates.items()}
    return {
        "single": single, "many": crowded, "batched": batched, "resident": resident, "rate": rate_of, "p99": p99,
    }  # fmt: skip


def table(results: Mapping[str, Mapping[str, float]], many: int) -> Table:
    made = Table("server", title="CPU of the server a delivery of 300 bytes")
    for title in (f"1 → {FEW:,}", f"1 → {many:,}", f"{TOGETHER} → {FEW:,}", "bytes a connection", "half load", "p99"):
        made.add_column(title, justify="right")
    for name in results["single"]:
        single, crowded, batched, resident, rate, p99 = (of[name] for of in results.values())
        costs = [f"{cost * 1e6:.2f} µs" for cost in (single, crowded, batched)]
        made.add_row(name, *costs, f"{resident:,.0f}", f"{rate:,.0f}/s", f"{p99 * 1e3:.1f} ms")
    return made


def keys(results: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    """The ratios; null where there is no peer."""

    def ratio(case: str) -> float | None:
        peers = [value for name, value in results[case].items() if name != Tocsin.name]
        return round(results[case][Tocsin.name] / min(peers), 3) if peers else None

    return {
        "single_1k_vs_best_peer": ratio("single"),
        "single_10k_vs_best_peer": ratio("many"),
        "batched_1k_vs_best_peer": ratio("batched"),
        "bytes_per_idle_connection": round(results["resident"][Tocsin.name]),
        "p99_half_load_vs_best_peer": ratio("p99"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, within two minutes")
    parser.add_argument("--only", default="", help="servers to start beside Tocsin, with commas")
    options = parser.parse_args()
    many = min(MANY, most_subscribers())
    if many < MANY:
        console.print(f"Only {many:,} connections are allowed here: they stand for {MANY:,}")
    only = {Tocsin.name.lower(), *options.only.lower().split(",")} if options.only else set()
    with contenders(only) as found:
        results = measure(found, QUICK if options.quick else FULL, many)
    console.print(table(results, many))
    print(json.dumps(keys(results)))


if __name__ == "__main__":
    main()
