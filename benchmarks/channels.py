"""How fast channels run, as ratios against a named reference measured in the same run, interleaved.

    python benchmarks/channels.py [--quick]

The last line is one JSON object. ``--quick`` runs only the cases that its keys name.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench import ME, Columns, bench_cluster, channel, hold, interleaved, tree_cpu_s
from duck import DuckSpatial
from rich.console import Console
from rich.table import Table

from tocsin.datacluster.channel import Channel
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.spark.engine import Outcome, Run
from tocsin.model.position import Position
from tocsin.scenarios.subscriptions import uniform_keys, uniform_reports, uniform_spatial

DATASET = """
CREATE ACTIVE DATASET Reports (report_id STRING, kind STRING, severity INT, x DOUBLE, y DOUBLE, radius DOUBLE,
    text STRING, at TIMESTAMP) RETAIN 200000 RECORDS;
CREATE BROKER bench AT 'http://127.0.0.1:9/none';
"""
SPATIAL = """CREATE CONTINUOUS CHANNEL {name}(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
    SELECT r.report_id, r.kind, r.severity, r.x, r.y, r.text FROM Reports r
    WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius"""
EQUALITY = """CREATE CONTINUOUS CHANNEL {name}(key STRING) AS
    SELECT r.report_id, r.kind, r.severity, r.text FROM Reports r WHERE r.report_id = :key"""
FURTHER = """CREATE CONTINUOUS CHANNEL Ch{i}(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
    SELECT r.report_id, r.severity + {i} AS score, r.text FROM Reports r
    WHERE r.severity <> {i} AND r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius"""
SEVERE = """CREATE CONTINUOUS CHANNEL Ch{i}(kind STRING, least INT) AS
    SELECT r.report_id, upper(r.kind) AS kind, r.severity * {i} AS score FROM Reports r
    WHERE r.radius > {i} AND r.kind = :kind AND r.severity >= :least"""
THREADS = os.cpu_count() or 1
_WARM = 25  # ticks before Java has compiled what they need
console = Console()


class News:
    """Batches of records, each appended to the dataset once: every tick sees a window of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._seed = cluster, itertools.count(1)
        self.store = cluster._datasets["Reports"]

    def append(self, count: int, keys: np.ndarray[Any, Any] | None = None) -> tuple[int, int]:
        """(after, through) of ``count`` fresh records."""
        columns: Columns = dict(uniform_reports(count, seed=next(self._seed)))
        if keys is not None:
            columns["report_id"] = np.resize(keys, count)
        after = self.store.head
        self.store.append(pa.table({name: pa.array(values) for name, values in columns.items()}))
        return after, self.store.head


def catch_up(live: Channel, through: int) -> None:
    """Let the next tick begin after ``through``: what came before is not what is measured."""
    ledger = live_ledger[0]
    dataset = next(iter(live.windows))
    ledger.write(
        lambda tx: tx.execute("UPDATE channel_window SET through = ? WHERE channel_id = ?", (through, live.id))
    )
    live.windows[dataset] = through


live_ledger: list[Any] = []


def run_of(cluster: Cluster, live: Channel, window: tuple[int, int], stem: Path | None = None) -> Run:
    from tocsin.datacluster.spark.relations import Window

    held = live.subscriptions.acquire()
    return Run(live.prepared, {"reports": Window(*window)}, time.time(), held.ref, held.removed, stem)


def counted(cluster: Cluster, live: Channel, window: tuple[int, int]) -> int:
    """Pairs of one window, evaluated and counted on Spark."""
    run = run_of(cluster, live, window)
    engine = cluster._engine
    (outcome,) = engine.run_index([run]) if live.strategy == "index" else engine.count_join([run])
    live.subscriptions.release()
    if not isinstance(outcome, Outcome):
        raise outcome
    return outcome.pairs


def stored(cluster: Cluster, live: Channel) -> int:
    """One whole tick: evaluated, written, synced, committed."""
    (tick,) = cluster._executor.run([live])
    if tick.problem is not None or tick.outcome is None:
        raise RuntimeError(f"the tick failed: {tick.problem}")
    return tick.outcome.pairs


def spatial(
    cluster: Cluster, news: News, subs: Columns, duck: DuckSpatial, records: int, rounds: int, table: Table
) -> dict[str, float]:
    """The spatial channel against DuckDB: counted, stored, and with changes pending."""
    subscriptions = len(subs["x"])
    label = f"{subscriptions:,} × {records:,}"
    live = channel(cluster, SPATIAL.format(name=f"Near{subscriptions}x{records}"))
    hold(live, subs)
    live.subscriptions.compact(0)
    windows = [news.append(records) for _ in range(2 * (rounds + 1))]
    tables = [news.store.new(*w) for w in windows]
    mine, theirs = iter(windows), iter(tables)
    found: dict[str, int] = {}

    def ours() -> None:
        found["ours"] = counted(cluster, live, next(mine))

    def rival() -> None:
        found["duck"] = duck.count(next(theirs))

    count = interleaved({"index": ours, "duckdb": rival}, rounds)
    check(found, label)
    scratch = Path(tempfile.mkdtemp(dir=cluster._directory.root))
    catch_up(live, news.store.head)
    pairs: dict[str, int] = {}

    def ours_stored() -> None:
        news.append(records)
        began.append(time.perf_counter())
        pairs["ours"] = stored(cluster, live)
        took.append((time.perf_counter() - began[-1]) * 1000)

    began: list[float] = []
    took: list[float] = []

    def rival_stored() -> None:
        duck.store(tables[len(took) % len(tables)], scratch / f"{len(took)}.parquet")

    store = interleaved({"index": ours_stored, "duckdb": rival_stored}, rounds)
    store["index"] = statistics.median(took[1:])
    row(table, f"spatial {label}, counted", count["index"], count["duckdb"])
    row(table, f"spatial {label}, stored", store["index"], store["duckdb"])
    ratios = {"counted": count["index"] / count["duckdb"], "stored": store["index"] / store["duckdb"]}
    ratios["pending"] = pending(cluster, news, live, duck, subscriptions, records, rounds, table, label)
    cluster.execute(f"DROP CHANNEL {live.spec.name} CASCADE", ME)
    return ratios


def pending(
    cluster: Cluster, news: News, live: Channel, duck: DuckSpatial, subscriptions: int, records: int, rounds: int,
    table: Table, label: str,
) -> float:  # fmt: skip
    """10,000 subscriptions added and 10,000 removed since the last compaction."""
    changed = min(10_000, subscriptions // 10)
    hold(live, uniform_spatial(changed, seed=2), first_id=subscriptions + 1)
    live.subscriptions._index.remove(np.arange(1, changed + 1, dtype=np.uint32))
    windows = [news.append(records) for _ in range(rounds + 1)]
    mine, theirs = iter(windows), iter([news.store.new(*w) for w in windows])
    times = interleaved(
        {"index": lambda: counted(cluster, live, next(mine)), "duckdb": lambda: duck.count(next(theirs))}, rounds
    )
    if live.subscriptions._index.pending != 2 * changed:
        raise RuntimeError("the changes were compacted away before they were measured")
    row(table, f"spatial {label}, {changed:,} added and removed", times["index"], times["duckdb"])
    return times["index"] / times["duckdb"]


def joined(subs: Columns, duck: DuckSpatial, records: int, rounds: int, table: Table) -> float:
    """The spatial channel with the index strategy switched off."""
    with bench_cluster(channels__index=False) as cluster:
        cluster.execute(DATASET, ME)
        live_ledger[:] = [cluster._ledger]
        news = News(cluster)
        live = channel(cluster, SPATIAL.format(name="NearJoin"))
        hold(live, subs)
        live.subscriptions.compact(0)
        warm = 4  # the first joins are twice as slow, until Java has compiled them
        windows = [news.append(records) for _ in range(rounds + warm)]
        mine, theirs = iter(windows), iter([news.store.new(*w) for w in windows])
        found: dict[str, int] = {}

        def ours() -> None:
            found["ours"] = counted(cluster, live, next(mine))

        def rival() -> None:
            found["duck"] = duck.count(next(theirs))

        times = interleaved({"join": ours, "duckdb": rival}, rounds, warm=warm)
        check(found, "join")
        row(table, f"spatial {len(subs['x']):,} × {records:,}, by join, counted", times["join"], times["duckdb"])
        return times["join"] / times["duckdb"]


def few_and_many(cluster: Cluster) -> tuple[Channel, Channel]:
    """Two equal channels, with 10,000 subscriptions and with a million over the same 10,000 parameter sets."""
    keys = uniform_keys(1_000_000, 10_000)["key"]
    few, many = (channel(cluster, EQUALITY.format(name=name)) for name in ("Few", "Many"))
    subscribe(cluster, few, np.unique(keys))
    began = time.perf_counter()
    subscribe(cluster, many, keys)
    console.print(f"1,000,000 subscriptions added through the ledger in {time.perf_counter() - began:.1f} s")
    return few, many


def equality(cluster: Cluster, news: News, few: Channel, many: Channel, rounds: int, table: Table) -> float:
    """A million subscriptions over 10,000 distinct parameter sets cost what 10,000 cost.

    The two take turns in going first: what a tick leaves to do (notices) goes on in the next one.
    """
    keys = np.unique(uniform_keys(1_000_000, 10_000)["key"])

    def tick(live: Channel) -> None:
        began = time.perf_counter()
        stored(cluster, live)
        took[live.spec.name].append((time.perf_counter() - began) * 1000)

    took: dict[str, list[float]] = {"Few": [], "Many": []}
    catch_up(few, news.store.head)
    catch_up(many, news.store.head)
    for turn in range(rounds + 2):
        news.append(1_000, keys=keys)
        for live in (few, many) if turn % 2 else (many, few):
            tick(live)
    few_ms, many_ms = (statistics.median(took[n][2:]) for n in ("Few", "Many"))
    row(table, "equality, 1M over 10k subscriptions, 1,000 records", many_ms, few_ms)
    for live in (few, many):
        cluster.execute(f"DROP CHANNEL {live.spec.name} CASCADE", ME)
    return many_ms / few_ms


def subscribe(cluster: Cluster, live: Channel, keys: np.ndarray[Any, Any]) -> None:
    """In batches, two at a time: one is checked while the other is written."""

    def add(chunk: np.ndarray[Any, Any]) -> None:
        cluster.subscribe(live.spec.name, "bench", [Wanted([str(k)]) for k in chunk], ME)

    with ThreadPoolExecutor(2) as pool:
        deque(pool.map(add, np.array_split(keys, max(1, len(keys) // 25_000))), maxlen=0)


def per_subscription(cluster: Cluster, news: News, table: Table) -> float:
    """One Spark query a subscription, 20 of them measured, against the shared plan for all 10,000."""
    subs = uniform_spatial(10_000)
    live = channel(cluster, SPATIAL.format(name="Shared"))
    hold(live, subs)
    live.subscriptions.compact(0)
    shared = []
    for _ in range(6):
        window = news.append(1_000)
        began = time.perf_counter()
        counted(cluster, live, window)
        shared.append(time.perf_counter() - began)
    from tocsin.datacluster.spark.relations import arrow_frame

    arrow_frame(cluster._spark, news.store.new(*window)).createOrReplaceTempView("bench_news")
    alone = []
    for i in range(22):
        kind, x, y, radius = (subs[c][i] for c in ("kind", "x", "y", "radius"))
        sql = (
            f"SELECT count(*) FROM bench_news r WHERE r.kind = '{kind}' AND "
            f"sqrt((r.x - {x}D) * (r.x - {x}D) + (r.y - {y}D) * (r.y - {y}D)) < {radius}D"
        )
        began = time.perf_counter()
        cluster._spark.sql(sql).collect()
        alone.append(time.perf_counter() - began)
    ours, theirs = statistics.median(shared[1:]), statistics.median(alone[2:]) * 10_000
    row(table, "10,000 subscriptions shared, over one query each (extrapolated)", ours * 1000, theirs * 1000)
    cluster.execute("DROP CHANNEL Shared CASCADE", ME)
    return theirs / ours


def continuous(cluster: Cluster, rounds: int, table: Table) -> float:
    """From a record's acceptance to its readable result, over one trivial Spark query."""
    cluster.execute(SPATIAL.format(name="Live"), ME)
    live = cluster._channels["Live"]
    subs = uniform_spatial(10_000)
    wanted = [Wanted({n: v[i].item() for n, v in subs.items()}) for i in range(10_000)]
    cluster.subscribe("Live", "bench", wanted, ME)
    live.subscriptions.compact(0)
    cluster._spark.createDataFrame(pa.table({"x": [1.0]})).createOrReplaceTempView("bench_one")
    took: dict[str, list[float]] = {"ours": [], "floor": []}
    records = one_by_one(uniform_reports(rounds + 20, seed=77))
    cursor = Position.end_of(live.head)
    for turn, record in enumerate(records):
        body = json.dumps(record).encode()
        cluster.ingest("Reports", body, None, ME)
        began = time.perf_counter()
        (page,) = cluster.pull("bench", {"Live": cursor}, ME, wait_s=30.0)
        ours = time.perf_counter() - began
        cursor = page.through
        began = time.perf_counter()
        cluster._spark.sql("SELECT x + 1 FROM bench_one").collect()
        floor = time.perf_counter() - began
        if turn >= 20:
            took["ours"].append(ours * 1000)
            took["floor"].append(floor * 1000)
    ours_ms, floor_ms = statistics.median(took["ours"]), statistics.median(took["floor"])
    row(table, "continuous, record accepted → result readable, over a trivial query", ours_ms, floor_ms)
    cluster.execute("DROP CHANNEL Live CASCADE", ME)
    return ours_ms / floor_ms


def one_by_one(columns: Columns) -> Iterator[dict[str, Any]]:
    for i in range(len(columns["x"])):
        values = {n: v[i].item() for n, v in columns.items()}
        yield values | {"at": str(columns["at"][i]) + "Z"}


def twenty(cluster: Cluster, news: News, rounds: int, idle_s: float, table: Table) -> dict[str, float]:
    """Twenty different channels in one tick over one channel in one tick; then their idle CPU."""
    subs = uniform_spatial(10_000)
    severe = {"kind": subs["kind"], "least": np.random.default_rng(1).integers(1, 6, 10_000).astype(np.int32)}
    lives = [channel(cluster, (SEVERE if i % 2 else FURTHER).format(i=i)) for i in range(21)]
    for i, live in enumerate(lives):
        hold(live, severe if i % 2 else subs)
        live.subscriptions.compact(0)
    for live in lives:
        catch_up(live, news.store.head)
    took: dict[str, list[float]] = {"one": [], "twenty": []}
    groups = [("one", lives[:1]), ("twenty", lives[1:])]
    for turn in range(rounds + _WARM):
        news.append(1)
        for name, group in groups if turn % 2 else reversed(groups):
            began = time.perf_counter()
            cluster._executor.run(group)
            took[name].append((time.perf_counter() - began) * 1000)
    one_ms, twenty_ms = (statistics.median(took[n][_WARM:]) for n in ("one", "twenty"))
    row(table, "tick of 20 channels over tick of one, 1 record", twenty_ms, one_ms)
    for live in lives[1:]:
        cluster._ticker.add(live)
    time.sleep(3.0)  # what the ticks left to do ends
    gc.collect()
    before, began = tree_cpu_s(os.getpid()), time.perf_counter()
    time.sleep(idle_s)
    percent = 100 * (tree_cpu_s(os.getpid()) - before) / (time.perf_counter() - began)
    table.add_row("20 channels, no new data", f"{percent:.1f} % CPU", "one core", "")
    for live in lives:
        cluster.execute(f"DROP CHANNEL {live.spec.name} CASCADE", ME)
    return {"channels20_vs_one": twenty_ms / one_ms, "idle_cpu_percent": percent}


def check(found: dict[str, int], what: str) -> None:
    if found["ours"] != found["duck"]:
        raise RuntimeError(f"{what}: the product found {found['ours']:,} pairs, DuckDB {found['duck']:,}")


def row(table: Table, what: str, ours: float, reference: float) -> None:
    table.add_row(what, f"{ours:,.1f}", f"{reference:,.1f}", f"{ours / reference:.3f}")
    console.print(f"{what}: {ours:,.1f} ms against {reference:,.1f} ms = {ours / reference:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="only the cases that the keys name, in under three minutes"
    )
    quick = parser.parse_args().quick
    rounds = 3 if quick else 9
    table = Table("case", "ours, ms", "reference, ms", "ratio")
    keys: dict[str, float] = {}
    with bench_cluster() as cluster:
        cluster.execute(DATASET, ME)
        live_ledger[:] = [cluster._ledger]
        news = News(cluster)
        keys["continuous_p50_vs_floor"] = continuous(cluster, 60 if quick else 200, table)
        keys |= twenty(cluster, news, 20 if quick else 50, 5.0 if quick else 20.0, table)
        keys["per_subscription_speedup"] = per_subscription(cluster, news, table)
        for subscriptions in () if quick else (10_000, 100_000):
            subs = uniform_spatial(subscriptions)
            duck = DuckSpatial(subs, THREADS)
            for records in (1_000, 10_000):
                spatial(cluster, news, subs, duck, records, rounds, table)
            duck.close()
        with ThreadPoolExecutor(1) as pool:  # two preparations at a time
            crowds = pool.submit(few_and_many, cluster)
            subs = uniform_spatial(1_000_000)
            duck = DuckSpatial(subs, THREADS)
        few, many = crowds.result()
        if not quick:
            spatial(cluster, news, subs, duck, 1_000, rounds, table)
        ratios = spatial(cluster, news, subs, duck, 10_000, rounds, table)
        keys["spatial_vs_duckdb"] = ratios["counted"]
        keys["spatial_pending_vs_duckdb"] = ratios["pending"]
        keys["spatial_stored_vs_duckdb"] = ratios["stored"]
        keys["equality_growth"] = equality(cluster, news, few, many, 10 if quick else 30, table)
    keys["join_vs_duckdb"] = joined(subs, duck, 10_000, 3 if quick else rounds, table)
    duck.close()
    console.print(table)
    print(json.dumps({name: round(value, 4) for name, value in keys.items()}))


if __name__ == "__main__":
    main()
