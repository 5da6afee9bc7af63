"""Executions that would take for ever: ended by their limit, by statements and by a drain, and never lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.clusters import ME, feed, pull, run, running_cluster, seen, subscribe, until
from tocsin.datacluster.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING);
CREATE DATASET Big (n INT) PRIMARY KEY (n);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
"""
CONDITION = "(r.kind = :kind OR r.kind = concat(:kind, '!'))"  # no index takes this
MONSTER = f"SELECT r.id, count(*) AS c FROM Reports r, Big a, Big b, Big c WHERE {CONDITION} GROUP BY r.id"
HARMLESS = f"SELECT r.id FROM Reports r WHERE {CONDITION}"
MANY = [{"n": n} for n in range(2_500)]  # their triples take many seconds
SETTINGS = {
    "channels__retry_backoff_min": "20ms", "channels__retry_backoff_max": "200ms",
    "channels__slow_backoff_max": "200ms", "channels__stop_wait": "10s",
}  # fmt: skip


@pytest.fixture
def cluster(spark: SparkSession, tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path, spark, **SETTINGS) as running:
        run(running, SCHEMA)
        feed(running, "Big", MANY)
        yield running


def create(cluster: Cluster, name: str, query: str) -> Any:
    run(cluster, f"CREATE OR REPLACE CONTINUOUS CHANNEL {name}(kind STRING) AS {query}")
    return subscribe(cluster, name, "fire")


def is_evaluating(cluster: Cluster, spark: SparkSession) -> bool:
    """Whether a job of the channels runs on Spark; the warming up at a start is none."""
    tracker = spark.sparkContext.statusTracker()
    groups = [f"{name}-{cluster._jobs._serial}" for name in ("tick_0", "tick_1", "retry_0")]
    return any(set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(group)) for group in groups)


def start_monster(cluster: Cluster, spark: SparkSession) -> Any:
    held = create(cluster, "Monster", MONSTER)
    feed(cluster, "Reports", [{"id": "a", "kind": "fire"}])
    until(lambda: is_evaluating(cluster, spark), "the execution runs on Spark")
    return held


def tame(cluster: Cluster) -> None:
    """Leave one record of those that the monster multiplies."""
    cluster.delete_records("Big", MANY[1:], ME)


def is_told_to_yield(cluster: Cluster) -> bool:
    """Whether a monster was cancelled for others; feeds them, for one may pass before monsters hold all of Spark."""
    feed(cluster, "Reports", [{"id": "b", "kind": "fire"}])
    return "while others waited (channels.yield_after)" in str(cluster._channels["Monster"].problem)


def test_over_its_limit_a_channel_fails_alone_and_is_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    with running_cluster(tmp_path, spark, **SETTINGS, channels__execution_limit="1s") as cluster:
        run(cluster, SCHEMA)
        feed(cluster, "Big", MANY)
        other = create(cluster, "Other", HARMLESS)
        monster = start_monster(cluster, spark)
        assert cluster._channels["Other"].group == cluster._channels["Monster"].group
        until(lambda: cluster._channels["Monster"].problem, "the channel is told to fail")
        assert "channels.execution_limit (1s)" in str(cluster._channels["Monster"].problem)
        feed(cluster, "Reports", [{"id": "b", "kind": "fire"}])
        seen(cluster, "Reports", "Other")
        assert pull(cluster, "Other") == [(other.backend, {"id": "a"}), (other.backend, {"id": "b"})]
        tame(cluster)
        seen(cluster, "Reports", "Monster")
        assert pull(cluster, "Monster") == [(monster.backend, {"id": i, "c": "1"}) for i in "ab"]


def test_pausing_ends_the_execution_and_resuming_repeats_it(cluster: Cluster, spark: SparkSession) -> None:
    monster = start_monster(cluster, spark)
    run(cluster, "PAUSE CHANNEL Monster")
    until(lambda: not is_evaluating(cluster, spark), "the job is cancelled")
    assert cluster._channels["Monster"].problem is None
    tame(cluster)
    run(cluster, "RESUME CHANNEL Monster")
    seen(cluster, "Reports", "Monster")
    assert pull(cluster, "Monster") == [(monster.backend, {"id": "a", "c": "1"})]


def test_pausing_one_channel_of_a_job_leaves_the_others(cluster: Cluster, spark: SparkSession) -> None:
    other = create(cluster, "Other", HARMLESS)
    start_monster(cluster, spark)
    run(cluster, "PAUSE CHANNEL Monster")
    seen(cluster, "Reports", "Other")
    assert pull(cluster, "Other") == [(other.backend, {"id": "a"})]


def test_replacing_ends_the_execution_and_the_new_query_sees_its_records(cluster: Cluster, spark: SparkSession) -> None:
    monster = start_monster(cluster, spark)
    run(cluster, f"CREATE OR REPLACE CONTINUOUS CHANNEL Monster(kind STRING) AS {HARMLESS}")
    seen(cluster, "Reports", "Monster")
    assert pull(cluster, "Monster") == [(monster.backend, {"id": "a"})]
    assert not is_evaluating(cluster, spark)


def test_dropping_ends_the_execution(cluster: Cluster, spark: SparkSession) -> None:
    start_monster(cluster, spark)
    run(cluster, "DROP CHANNEL Monster CASCADE")
    until(lambda: not is_evaluating(cluster, spark), "the job is cancelled")
    assert cluster.channels(ME) == []


def test_a_drain_ends_the_execution_and_the_next_start_repeats_it(spark: SparkSession, tmp_path: Path) -> None:
    settings = {**SETTINGS, "channels__stop_wait": "1s"}
    with running_cluster(tmp_path, spark, **settings) as cluster:
        run(cluster, SCHEMA)
        feed(cluster, "Big", MANY)
        monster = start_monster(cluster, spark)
    until(lambda: not is_evaluating(cluster, spark), "the job is cancelled")
    with running_cluster(tmp_path, spark, **settings, channels__execution_limit="1s") as cluster:
        tame(cluster)
        seen(cluster, "Reports", "Monster")
        assert pull(cluster, "Monster") == [(monster.backend, {"id": "a", "c": "1"})]


def test_a_monster_yields_to_other_channels_and_to_selects(spark: SparkSession, tmp_path: Path) -> None:
    patient = SETTINGS | {"channels__yield_after": "2s", "channels__slow_backoff_max": "1m"}
    with running_cluster(tmp_path, spark, **patient) as cluster:
        run(cluster, SCHEMA)
        feed(cluster, "Big", MANY)
        for name in ("Monster", "Hydra"):
            create(cluster, name, MONSTER)
        feed(cluster, "Reports", [{"id": "a", "kind": "fire"}])
        until(lambda: is_evaluating(cluster, spark), "the monsters hold Spark")
        other = create(cluster, "Other", "SELECT r.id, b.n FROM Reports r, Big b WHERE r.kind = :kind AND b.n = 1")
        until(lambda: is_told_to_yield(cluster), "the monster is told to fail", pause_s=0.2)
        seen(cluster, "Reports", "Other")
        answers = pull(cluster, "Other")
        assert answers
        assert all(answer == (other.backend, {"id": "b", "n": 1}) for answer in answers)
        assert run(cluster, "SELECT count(*) AS c FROM Big")[0].rows == (("2500",),)
