"""What benchmarks share: a cluster of their own, interleaved timing, CPU of a process tree."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin import java
from tocsin.config import load
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.cluster import Cluster
from tocsin.tokens import LOCAL_ADMIN

ME = LOCAL_ADMIN
Columns = dict[str, np.ndarray[Any, Any]]


@contextmanager
def bench_cluster(**settings: Any) -> Iterator[Cluster]:
    """A cluster in a directory that goes away with it; settings are by path with ``__`` for the dot."""
    java.use()
    with TemporaryDirectory(prefix="tocsin-bench-") as directory:
        overrides = {name.replace("__", "."): value for name, value in settings.items()}
        defaults = {"cluster.data_dir": directory, "cluster.driver_memory": "6g", "results.retain_size": "20 GB"}
        cluster = Cluster(load(overrides=defaults | overrides))
        cluster.open()
        cluster._housekeeping.stop()  # compaction would take away what the cases with pending changes measure
        try:
            yield cluster
        finally:
            cluster.close()


def channel(cluster: Cluster, statement: str) -> Channel:
    """Create a channel and keep the scheduler's hands off it: the benchmark ticks it."""
    cluster.execute(statement, ME)
    name = statement.split("CHANNEL", 1)[1].split("(", 1)[0].strip()
    live = cluster._channels[name]
    cluster._ticker.remove(live)
    return live


def hold(live: Channel, columns: Columns, first_id: int = 1) -> None:
    """Give a channel backend subscriptions without the ledger, which is not what is measured."""
    count = len(next(iter(columns.values())))
    ids = np.arange(first_id, first_id + count, dtype=np.uint32)
    live.subscriptions._index.add(ids, {name: pa.array(values) for name, values in columns.items()})
    live.subscriptions.backends += count


def interleaved(cases: dict[str, Callable[[], Any]], rounds: int, warm: int = 1) -> dict[str, float]:
    """Median milliseconds of each case, the cases taking turns."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(warm + rounds):
        for name, case in cases.items():
            began = time.perf_counter()
            case()
            if turn >= warm:
                times[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def tree_cpu_s(root: int) -> float:
    """CPU seconds used so far by a process and its descendants that live."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = sum(int(f) for f in fields[11:13])
    total, members = 0, {root}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in members} - members
        members |= more
        grown = bool(more)
    total = sum(used.get(pid, 0) for pid in members)
    return total / os.sysconf("SC_CLK_TCK")
