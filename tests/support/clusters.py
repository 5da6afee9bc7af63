"""A real data cluster for tests: real Spark, real files, no server in front unless asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.waiting import until
from tocsin.config import load
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.service import ChannelPage, Wanted
from tocsin.model.position import START, Position
from tocsin.tokens import LOCAL_ADMIN

ME = LOCAL_ADMIN
BROKER = "b1"


@contextmanager
def running_cluster(directory: Path, spark: SparkSession, **settings: Any) -> Iterator[Cluster]:
    """An open cluster in ``directory``; settings are by path with ``__`` for the dot."""
    overrides = {name.replace("__", "."): value for name, value in settings.items()}
    cluster = Cluster(load(overrides={"cluster.data_dir": str(directory), **overrides}), spark=spark)
    cluster.open()
    try:
        yield cluster
    finally:
        cluster.close()


def run(cluster: Cluster, text: str) -> list[Any]:
    return cluster.execute(text, ME)


def feed(cluster: Cluster, dataset: str, records: Sequence[Mapping[str, Any]], key: str | None = None) -> Any:
    return cluster.ingest(dataset, "\n".join(json.dumps(r) for r in records).encode(), key, ME)


def subscribe(cluster: Cluster, channel: str, *arguments: Any, broker: str = BROKER) -> Any:
    return cluster.subscribe(channel, broker, [Wanted(list(arguments))], ME)[0]


def seen(cluster: Cluster, dataset: str, channel: str) -> None:
    """Wait until ``channel`` has seen everything that ``dataset`` holds."""
    live = cluster._channels[channel]
    head = cluster._datasets[dataset].head
    until(lambda: live.windows[dataset.lower()] >= head, f"{channel} has seen {dataset} up to {head}")


def pull(cluster: Cluster, channel: str, after: Position = START, broker: str = BROKER) -> list[tuple[int, Any]]:
    """Every (backend, payload) of ``channel`` for ``broker`` after a position, in order."""
    rows: list[tuple[int, Any]] = []
    while True:
        page: ChannelPage = cluster.pull(broker, {channel: after}, ME)[0]
        rows += [(b, json.loads(r.payload)) for r in page.results for b in sorted(r.backends)]
        if page.is_end:
            return rows
        after = page.through
