"""What a delivery costs the broker, beside Valkey (or Redis), NATS and Mosquitto on the same work in the same run.

    python benchmarks/fanout.py [--quick] [--only NAME,...]

Each server is one process on the first core, the generator is on the second. Servers take turns: a ratio of costs is
the median of the turns' ratios, one of latencies compares everyone's best turn. Memory is measured on servers that have
had no load, since what a load leaves free would be filled first. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import truediv
from pathlib import Path
from tempfile import TemporaryDirectory

from fanout_crowd import Crowd, most_subscribers
from fanout_servers import SERVERS, Running, Server, Tocsin, free_port
from rich.console import Console
from rich.table import Table

FEW, MANY, TOGETHER = 1_000, 10_000, 20
console = Console(width=120)


Values = dict[str, list[float]]
"""What was measured, by server, turn by turn."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """How often everyone takes its turn, and how much is done in one."""

    turns: int
    single: int
    batched: int
    many: int
    load_turns: int
    load_s: float


FULL = Amounts(turns=30, single=50, batched=5, many=4, load_turns=8, load_s=3.0)
QUICK = Amounts(turns=10, single=25, batched=3, many=2, load_turns=4, load_s=1.2)


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    running: Running
    crowd: Crowd


@contextmanager
def contenders(only: set[str]) -> Iterator[list[Contender]]:
    """All servers that are installed, started, each with its crowd."""
    cores = os.sched_getaffinity(0)
    first, *others = sorted(cores)
    with ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, cores)
        found = []
        for kind in SERVERS:
            server = kind()
            directory = Path(stack.enter_context(TemporaryDirectory(prefix="tocsin-fanout-")))
            port = free_port()
            command = server.command(port, directory)
            if command is not None and is_wanted(server.name, only):
                os.sched_setaffinity(0, {first})  # the server inherits it
                running = Running(command, port)
                stack.callback(running.stop)
                os.sched_setaffinity(0, {*others} or {first})
                found.append(_joined(stack, server, running, others[0] if others else first))
        yield found


def is_wanted(name: str, only: set[str]) -> bool:
    return not only or name.lower() in only


def _joined(stack: ExitStack, server: Server, running: Running, core: int) -> Contender:
    crowd = Crowd(server, running, core)
    stack.callback(crowd.stop)
    return Contender(server.name, running, crowd)


def turns(found: list[Contender], count: int, case: Callable[[Contender], float]) -> Values:
    """The case's value for each server, ``count`` times, the servers taking turns."""
    values: Values = {c.name: [] for c in found}
    for _ in range(count):
        for contender in found:
            values[contender.name].append(case(contender))
    return values


def growth(contender: Contender, subscribers: int) -> float:
    """Resident bytes for each subscriber beyond the first ones, of a server that has done nothing else."""
    contender.crowd.grow(FEW)
    before = contender.running.resident_bytes()
    contender.crowd.grow(subscribers)
    return (contender.running.resident_bytes() - before) / (subscribers - FEW)


def memory(only: set[str], many: int) -> Values:
    with contenders(only) as found:
        absent = {kind.name for kind in SERVERS if is_wanted(kind.name, only)} - {c.name for c in found}
        for name in sorted(absent):
            console.print(f"{name} is absent: it is not installed here")
        return turns(found, 1, lambda c: growth(c, many))


def measure(found: list[Contender], amounts: Amounts, many: int) -> dict[str, Values]:
    """Everything but memory, by case."""
    for contender in found:
        contender.crowd.grow(FEW)
    single = turns(found, amounts.turns, lambda c: c.crowd.burst(amounts.single, 1))
    batched = turns(found, amounts.turns, lambda c: c.crowd.burst(amounts.batched, TOGETHER))
    rates = {name: 0.5 / statistics.median(costs) for name, costs in single.items()}

    def loaded(contender: Contender) -> float:
        per_s = rates[contender.name] / FEW
        return contender.crowd.load(per_s, max(1, int(per_s * amounts.load_s)))

    p99 = turns(found, amounts.load_turns, loaded)
    for contender in found:
        contender.crowd.grow(many)
    crowded = turns(found, amounts.turns, lambda c: c.crowd.burst(amounts.many, 1))
    rate = {name: [rate] for name, rate in rates.items()}
    return {"single": single, "many": crowded, "batched": batched, "rate": rate, "p99": p99}


def table(results: Mapping[str, Values], many: int) -> Table:
    made = Table("server", title="CPU of the server a delivery of 300 bytes")
    for title in (f"1 → {FEW:,}", f"1 → {many:,}", f"{TOGETHER} → {FEW:,}", "bytes a connection", "half load", "p99"):
        made.add_column(title, justify="right")
    for name in results["single"]:
        costs = [f"{statistics.median(results[case][name]) * 1e6:.2f} µs" for case in ("single", "many", "batched")]
        (resident,), (rate,), p99 = (results[case][name] for case in ("resident", "rate", "p99"))
        made.add_row(name, *costs, f"{resident:,.0f}", f"{rate:,.0f}/s", f"{min(p99) * 1e3:.1f} ms")
    return made


def keys(results: Mapping[str, Values]) -> dict[str, float | None]:
    """What was promised; a ratio is null where there is no peer."""

    def of_costs(case: str) -> float | None:
        mine = results[case][Tocsin.name]
        return highest(statistics.median(map(truediv, mine, theirs)) for theirs in peers(case))

    def of_best(case: str) -> float | None:
        return highest(min(results[case][Tocsin.name]) / min(theirs) for theirs in peers(case))

    def peers(case: str) -> list[list[float]]:
        return [values for name, values in results[case].items() if name != Tocsin.name]

    def highest(ratios: Iterable[float]) -> float | None:
        """The best peer is the one that we look worst beside."""
        worst = max(ratios, default=None)
        return None if worst is None else round(worst, 3)

    return {
        "single_1k_vs_best_peer": of_costs("single"),
        "single_10k_vs_best_peer": of_costs("many"),
        "batched_1k_vs_best_peer": of_costs("batched"),
        "bytes_per_idle_connection": round(results["resident"][Tocsin.name][0]),
        "p99_half_load_vs_best_peer": of_best("p99"),
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
    resident = memory(only, many)
    with contenders(only) as found:
        results = measure(found, QUICK if options.quick else FULL, many) | {"resident": resident}
    console.print(table(results, many))
    print(json.dumps(keys(results)))


if __name__ == "__main__":
    main()
