"""How fast subscriptions come, move and go while a channel is read, against plain SQLite in the same run.

    python benchmarks/subscriptions.py [--quick]

The product's own service is driven, without Spark: arguments are checked, the ledger is written and synced,
the index and the attachments follow. Meanwhile a thread takes and releases the state that executions use, as
often as ticks do, and compacts when it is due. The reference writes the same rows in the same batches to one
table (id, channel, backend, broker, owner, execution, time) with a primary key, WAL and full sync, and does
nothing else. The two take turns. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import ME
from rich.console import Console

from tocsin.clock import SystemClock
from tocsin.compiler.channel import CompileOptions, compile_channel
from tocsin.config import Config
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.spark.prepared import PreparedChannel
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage import subscriptions as table
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.subscribing import Subscribing
from tocsin.language.parser import parse_script
from tocsin.matching.maintain import CompactionRule
from tocsin.model.catalog import BrokerSpec, ChannelSpec, DatasetSpec
from tocsin.scenarios.subscriptions import uniform_spatial

SCRIPT = """
CREATE ACTIVE DATASET Reports (kind STRING, x DOUBLE, y DOUBLE);
CREATE CONTINUOUS CHANNEL Near(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
    SELECT r.kind, r.x, r.y FROM Reports r WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius
"""
BATCH, LOADED = 1000, 10_000  # subscriptions a request: measured, and while the many are made
TICK_S = 0.05
console = Console()


class Product:
    """A channel and two brokers, as the cluster has them."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        settings, clock, nothing = Config().channels, SystemClock(), {}  # type: ignore[var-annotated]
        dataset, spec = _declared()
        self._ledger, brokers = ledger, Brokers(ledger, clock)
        for name in ("one", "two"):
            brokers.create(BrokerSpec(name, "http://127.0.0.1:9/none"))
        rule = CompactionRule(settings.compact_pending)
        channels: Any = Channels(root, ledger, nothing, nothing, nothing, clock, CompileOptions(), 1.0, rule)  # type: ignore[arg-type]
        row = ledger.write(lambda tx: catalog.create_channel(tx, spec, 0.0))
        plan = compile_channel(spec, {"reports": dataset})
        self.channel = channels._channels["near"] = channels._open(row, PreparedChannel(spec, plan, "", None))
        self._service = Subscribing(ledger, channels, brokers, clock, settings.max_radius)

    def add(self, wanted: list[Wanted]) -> list[str]:
        return [made.id for made in self._service.subscribe("Near", "one", wanted, ME)]

    def change(self, ids: list[str]) -> None:
        self._service.change(ids, "two", ME)

    def remove(self, ids: list[str]) -> None:
        self._service.unsubscribe(ids, ME)

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """What executions and housekeeping do to the subscriptions, meanwhile."""
        over = threading.Event()
        thread = threading.Thread(target=self._tick, args=(over,))
        thread.start()
        yield
        over.set()
        thread.join()

    def compact(self) -> None:
        self.channel.subscriptions.compact(self._ledger.read(table.current_version))

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(TICK_S):
            self.channel.subscriptions.acquire()
            self.channel.subscriptions.release()
            if self.channel.subscriptions.needs_compaction():
                self.compact()


class PlainSqlite:
    """The same rows in one table, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._db, self._no = sqlite3.connect(path, isolation_level=None), itertools.count(1)
        self._db.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
               CREATE TABLE s (id TEXT PRIMARY KEY, channel, backend, broker, owner TEXT, since, at);"""
        )

    def add(self, ids: list[str]) -> None:
        rows = [(id, 1, next(self._no), 1, "local", 1, 0.0) for id in ids]
        self._run("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def change(self, ids: list[str]) -> None:
        self._run("UPDATE s SET broker = 2 WHERE id = ?", [(id,) for id in ids])

    def remove(self, ids: list[str]) -> None:
        self._run("DELETE FROM s WHERE id = ?", [(id,) for id in ids])

    def _run(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany(sql, rows)
        self._db.execute("COMMIT")


def measure(held: int, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as directory, Ledger(Path(directory) / "l.db") as ledger:
        product, plain = Product(Path(directory) / "index", ledger), PlainSqlite(Path(directory) / "plain.db")
        many = _subscriptions(held, seed=1)
        before = _resident_bytes()
        began, ids = time.perf_counter(), list[str]()
        for at in range(0, held, LOADED):
            ids += product.add(many[at : at + LOADED])
        console.print(f"{held:,} subscriptions made in {time.perf_counter() - began:.1f} s")
        product.compact()
        gc.collect()
        size = (_resident_bytes() - before) / held
        for at in range(0, held, LOADED):
            plain.add(ids[at : at + LOADED])
        with product.ticking():
            return _figures(_rounds(product, plain, rounds)) | {
                "resident_bytes_per_subscription": round(size),
                "subscriptions": held,
            }


def _rounds(product: Product, plain: PlainSqlite, rounds: int) -> dict[str, list[float]]:
    """Seconds of each batch; the first round warms up."""
    times: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        answer = work()
        times.setdefault(name, []).append(time.perf_counter() - began)
        return answer

    for turn in range(rounds + 1):
        wanted = _subscriptions(BATCH, seed=1000 + turn)
        ids = timed("add", lambda w=wanted: product.add(w))  # type: ignore[misc]
        timed("add plain", lambda i=ids: plain.add(i))  # type: ignore[misc]
        for name in ("change", "remove"):
            timed(name, lambda n=name, i=ids: getattr(product, n)(i))  # type: ignore[misc]
            timed(f"{name} plain", lambda n=name, i=ids: getattr(plain, n)(i))  # type: ignore[misc]
    return {name: measured[1:] for name, measured in times.items()}


def _figures(times: dict[str, list[float]]) -> dict[str, float]:
    median = {name: statistics.median(measured) for name, measured in times.items()}
    found: dict[str, float] = {}
    for name in ("add", "change", "remove"):
        found[f"{name}_per_s"] = round(BATCH / median[name])
        found[f"{name}_vs_sqlite"] = round(median[f"{name} plain"] / median[name], 3)
    return found


def _subscriptions(count: int, seed: int) -> list[Wanted]:
    columns = [values.tolist() for values in uniform_spatial(count, seed).values()]
    return [Wanted(list(arguments)) for arguments in zip(*columns, strict=True)]


def _declared() -> tuple[DatasetSpec, ChannelSpec]:
    dataset, channel = (statement.spec for statement in parse_script(SCRIPT))  # type: ignore[attr-defined]
    return dataset, channel


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 subscriptions instead of a million")
    quick = parser.parse_args().quick
    print(json.dumps(measure(100_000 if quick else 1_000_000, 20)))


if __name__ == "__main__":
    main()
