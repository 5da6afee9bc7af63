"""The index gives what the join gives, through the whole engine, however the subscriptions change.

Random channels are created twice, with the index and without it, and get the same subscriptions and
records: first all pending, with some removed again, then compacted, then changed once more, then in
another life of the cluster.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.clusters import BROKER, ME, feed, pull, run, running_cluster, seen
from support.random_channels import (
    CONDITIONS,
    KINDS,
    OF_USER,
    SCHEMA,
    USERS,
    RandomChannel,
    random_channel,
    random_report,
    random_user,
)
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.storage import subscriptions
from tocsin.model.position import Position

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

SEED = 7
RECORDS, SUBSCRIBERS, CHANGES = 60, 14, 5


@dataclass
class Twins:
    """One channel as ``<name>I`` and ``<name>J``, and the subscriptions that both hold."""

    name: str
    channel: RandomChannel
    held: list[str] = field(default_factory=list)
    made: int = 0
    checked: int = 0

    def create(self, cluster: Cluster) -> None:
        options = cluster._channels._options
        for suffix in "IJ":
            cluster._channels._options = replace(options, index=suffix == "I")
            text = f"{self.name}{suffix}({self.channel.parameters}) AS {self.channel.query}"
            run(cluster, f"CREATE CONTINUOUS CHANNEL {text}")
        cluster._channels._options = options
        assert [cluster._channels[self.name + s].strategy for s in "IJ"] == ["index", "join"], self.channel.query

    def subscribe(self, cluster: Cluster, rng: Random, count: int) -> None:
        drawn = {f"{self.made + i}": self.channel.arguments(rng) for i in range(count)}
        made = []
        for channel in (f"{self.name}I", f"{self.name}J"):
            wanted = [Wanted(arguments, f"{channel}-{i}") for i, arguments in drawn.items()]
            made.append(cluster.subscribe(channel, BROKER, wanted, ME))
        assert [one.backend for one in made[0]] == [one.backend for one in made[1]]
        self.held += drawn
        self.made += count

    def unsubscribe(self, cluster: Cluster, rng: Random, count: int) -> None:
        gone = rng.sample(self.held, count)
        assert cluster.unsubscribe([f"{self.name}{s}-{i}" for s in "IJ" for i in gone], ME) == 2 * count
        self.held = [i for i in self.held if i not in gone]

    def compact(self, cluster: Cluster) -> None:
        version = cluster._ledger.write(subscriptions.current_version)
        for suffix in "IJ":
            cluster._channels[self.name + suffix].subscriptions.compact(version)

    def check(self, cluster: Cluster, heads: dict[str, Position]) -> None:
        """The results since ``heads`` are the same."""
        found = []
        for channel in (f"{self.name}I", f"{self.name}J"):
            seen(cluster, "Reports", channel)
            found.append(Counter(map(str, pull(cluster, channel, heads[channel]))))
        assert found[0] == found[1], self.channel.query
        self.checked += found[0].total()


@dataclass
class Story:
    cluster: Cluster
    twins: list[Twins]
    rng: Random
    batches: int = 0

    def report(self) -> None:
        """New records, and users who moved; then both of every twin have found the same."""
        channels = [self.cluster._channels[twin.name + suffix] for twin in self.twins for suffix in "IJ"]
        heads = {channel.spec.name: Position.end_of(channel.head) for channel in channels}
        self.batches += 1
        self.cluster._engine._driver_records = 500 * (self.batches % 2)  # matched in the driver, then in workers
        feed(self.cluster, "Users", [random_user(self.rng, u) for u in self.rng.sample(USERS, 4)])
        feed(self.cluster, "Reports", [random_report(self.rng, f"{self.batches}.{i}") for i in range(RECORDS)])
        for twin in self.twins:
            twin.check(self.cluster, heads)

    def change(self) -> None:
        for twin in self.twins:
            twin.unsubscribe(self.cluster, self.rng, CHANGES)
            twin.subscribe(self.cluster, self.rng, CHANGES)


def test_the_index_and_the_join_find_the_same_pairs(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(SEED)
    firsts = [*CONDITIONS, OF_USER, OF_USER]
    twins = [Twins(f"C{i}", random_channel(rng, first)) for i, first in enumerate(firsts)]
    with running_cluster(tmp_path, spark) as cluster:
        run(cluster, SCHEMA)
        kinds: list[dict[str, Any]] = [{"kind": k, "label": f"{k}{i}"} for k in KINDS[:4] for i in range(2)]
        feed(cluster, "Kinds", [*kinds, {"kind": None, "label": "none"}])
        story = Story(cluster, twins, rng)
        for twin in twins:
            twin.create(cluster)
            twin.subscribe(cluster, rng, SUBSCRIBERS)
        story.change()
        story.report()
        for twin in twins:
            twin.compact(cluster)
        story.report()
        story.change()
        story.report()
    with running_cluster(tmp_path, spark) as cluster:
        story.cluster = cluster
        story.report()
        assert {view.subscriptions for view in cluster.channels(ME)} == {SUBSCRIBERS}
    barren = [twin.channel.query for twin in twins if not twin.checked]
    assert len(barren) <= 2, barren
