"""One channel's trouble is its own: failures, slowness and idleness on real Spark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from support.clusters import ME, feed, pull, run, running_cluster, seen, subscribe, until
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.spark.reasons import reason
from tocsin.errors import InvalidQuery

pytestmark = pytest.mark.spark

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, place INT);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
"""
# ``element_at`` refuses the place 0 when it meets one, and nothing before.
PICKY = "SELECT r.id, element_at(array('a', 'b'), r.place) AS letter FROM Reports r WHERE {condition}"
CONDITIONS = {"index": "r.kind = :kind", "join": "(r.kind = :kind OR r.kind = concat(:kind, '!'))"}


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"channels__retry_backoff_min": "20ms", "channels__retry_backoff_max": "200ms"}
    with running_cluster(tmp_path_factory.mktemp("cluster"), spark, **settings) as running:
        run(running, SCHEMA)
        yield running


@pytest.fixture(autouse=True)
def no_channels_left(cluster: Cluster) -> Iterator[None]:
    yield
    for view in cluster.channels(ME):
        run(cluster, f"DROP CHANNEL {view.name} CASCADE")


def create(cluster: Cluster, name: str, query: str, mode: str = "CONTINUOUS", tail: str = "") -> None:
    run(cluster, f"CREATE OR REPLACE {mode} CHANNEL {name}(kind STRING) {tail} AS {query}")


def good(strategy: str, output: str = "r.id") -> str:
    return f"SELECT {output} FROM Reports r WHERE {CONDITIONS[strategy]}"


def report(id: str, place: int = 1, kind: str = "fire") -> dict[str, Any]:
    return {"id": id, "kind": kind, "place": place}


def view(cluster: Cluster, name: str) -> Any:
    return next(c for c in cluster.channels(ME) if c.name == name)


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark has run so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


@pytest.mark.parametrize("strategy", ["index", "join"])
def test_a_channel_that_fails_leaves_the_others_alone_and_loses_nothing(cluster: Cluster, strategy: str) -> None:
    create(cluster, "First", good(strategy))
    create(cluster, "Picky", PICKY.format(condition=CONDITIONS[strategy]))
    create(cluster, "Last", good(strategy, "upper(r.id) AS id"))
    assert len({cluster._channels[name].group for name in ("First", "Picky", "Last")}) == 1
    assert {cluster._channels[name].strategy for name in ("First", "Picky", "Last")} == {strategy}
    backends = {name: subscribe(cluster, name, "fire").backend for name in ("First", "Picky", "Last")}
    feed(cluster, "Reports", [report("a", 1), report("b", 2)])
    for name in backends:
        seen(cluster, "Reports", name)
    feed(cluster, "Reports", [report("c", 1), report("d", 0), report("e", 2)])
    seen(cluster, "Reports", "First")
    seen(cluster, "Reports", "Last")
    until(lambda: view(cluster, "Picky").state == "failing", "the channel is told to fail")
    feed(cluster, "Reports", [report("f", 2)])
    seen(cluster, "Reports", "First")
    assert pull(cluster, "First") == [(backends["First"], {"id": i}) for i in "abcdef"]
    seen(cluster, "Reports", "Last")
    assert pull(cluster, "Last") == [(backends["Last"], {"id": i}) for i in "ABCDEF"]
    assert pull(cluster, "Picky") == [(backends["Picky"], {"id": i, "letter": i}) for i in "ab"]
    create(cluster, "Picky", PICKY.format(condition=CONDITIONS[strategy]).replace("element_at", "try_element_at", 1)
           .replace("r.place", "nullif(r.place, 0)"))  # fmt: skip
    seen(cluster, "Reports", "Picky")
    letters = {"a": "a", "b": "b", "c": "a", "d": None, "e": "b", "f": "b"}
    assert pull(cluster, "Picky") == [(backends["Picky"], {"id": i, "letter": x}) for i, x in letters.items()]
    assert (view(cluster, "Picky").state, view(cluster, "Picky").problem) == ("running", None)


def test_a_failing_channel_is_tried_again_and_reported_with_its_sql(cluster: Cluster) -> None:
    create(cluster, "Picky", PICKY.format(condition=CONDITIONS["index"]))
    subscribe(cluster, "Picky", "fire")
    feed(cluster, "Reports", [report("x", 0)])
    until(lambda: cluster.explain("Picky", ME)["executions"][:1] and
          cluster.explain("Picky", ME)["executions"][0]["attempt"] >= 4, "four attempts")  # fmt: skip
    facts = cluster.explain("Picky", ME)
    assert "INVALID_INDEX_OF_ZERO" in facts["problem"] or "INVALID_ARRAY_INDEX" in facts["problem"]
    assert "ELEMENT_AT" in facts["sql"].upper()
    assert facts["lag_s"] > 0
    newest = facts["executions"][0]
    assert (newest["state"], newest["problem"]) == ("started", facts["problem"])
    (shown,) = run(cluster, "SHOW CHANNELS")
    row = dict(zip(shown.columns, shown.rows[0], strict=True))
    assert (row["state"], row["problem"]) == ("failing", facts["problem"])
    (shown,) = run(cluster, "SHOW EXECUTIONS OF Picky")
    assert dict(zip(shown.columns, shown.rows[0], strict=True))["problem"] == facts["problem"]
    (answer,) = run(cluster, "EXPLAIN CHANNEL Picky")
    assert f"failing: {facts['problem']}" in answer.message
    assert facts["sql"] in answer.message


def test_a_channel_whose_index_cannot_be_written_fails_alone_until_it_can(cluster: Cluster) -> None:
    create(cluster, "Broken", good("index"))
    create(cluster, "Whole", good("index"))
    first, whole = subscribe(cluster, "Broken", "fire"), subscribe(cluster, "Whole", "fire")
    directory: Path = cluster._channels["Broken"].subscriptions._index.directory
    shutil.rmtree(directory)
    directory.write_text("in the way")
    second = subscribe(cluster, "Broken", "flood")  # its index is written at the next tick
    feed(cluster, "Reports", [report("a"), report("b", kind="flood")])
    seen(cluster, "Reports", "Whole")
    until(lambda: view(cluster, "Broken").state == "failing", "the channel is told to fail")
    feed(cluster, "Reports", [report("c")])
    seen(cluster, "Reports", "Whole")
    assert pull(cluster, "Whole") == [(whole.backend, {"id": "a"}), (whole.backend, {"id": "c"})]
    directory.unlink()
    directory.mkdir()
    seen(cluster, "Reports", "Broken")
    assert pull(cluster, "Broken") == [
        (first.backend, {"id": "a"}),
        (second.backend, {"id": "b"}),
        (first.backend, {"id": "c"}),
    ]
    assert view(cluster, "Broken").state == "running"


def test_an_execution_longer_than_its_period_coalesces_ticks_and_goes_on(cluster: Cluster) -> None:
    run(cluster, "CREATE DATASET Many (n INT)")
    feed(cluster, "Many", [{"n": n} for n in range(700)])
    slow = "SELECT r.id, count(*) AS n FROM Reports r, Many a, Many b WHERE r.kind = :kind GROUP BY r.id"
    create(cluster, "Slow", slow, mode="", tail="PERIOD '100ms'")
    one = subscribe(cluster, "Slow", "fire")
    lags = []
    for i in range(3):
        feed(cluster, "Reports", [report(f"{i}{j}") for j in range(3)])
        until(lambda: lags.append(cluster.explain("Slow", ME)["lag_s"]) or any(lags), "a lag is to be seen")
        time.sleep(0.1)
    seen(cluster, "Reports", "Slow")
    facts = cluster.explain("Slow", ME)
    assert facts["coalesced_ticks"] > 0
    assert facts["problem"] is None
    told = [(one.backend, {"id": f"{i}{j}", "n": "490000"}) for i in range(3) for j in range(3)]
    assert sorted(pull(cluster, "Slow"), key=str) == told
    until(lambda: cluster.explain("Slow", ME)["lag_s"] == 0, "the lag is gone")


def test_no_new_data_makes_no_job(cluster: Cluster, spark: SparkSession) -> None:
    create(cluster, "Steady", good("index"))
    create(cluster, "Joining", good("join"))
    create(cluster, "Ticking", good("index"), mode="", tail="PERIOD '100ms'")
    names = ("Steady", "Joining", "Ticking")
    for name in names:
        subscribe(cluster, name, "fire")
    feed(cluster, "Reports", [report("a")])
    for name in names:
        seen(cluster, "Reports", name)
    entry = cluster._ticker._schedule._entries[cluster._channels["Ticking"].id]
    until(lambda: not any(e.is_running for e in cluster._ticker._schedule._entries.values()), "all is quiet")
    before, executions, ticked = jobs(spark), [cluster._channels[n].head for n in names], entry.started_at
    until(lambda: entry.started_at > ticked, "a tick without news")
    again = entry.started_at
    until(lambda: entry.started_at > again, "another tick without news")
    assert jobs(spark) == before
    assert [cluster._channels[n].head for n in names] == executions


def test_channels_over_one_dataset_share_a_job(
    cluster: Cluster, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster._engine, "_driver_records", 0)  # Spark answers a small scan without any job
    names = [f"C{i}" for i in range(5)]
    for i, name in enumerate(names):
        create(cluster, name, good("index", f"concat(r.id, '{i}') AS id"))
        subscribe(cluster, name, "fire")
    feed(cluster, "Reports", [report("warm")])
    for name in names:
        seen(cluster, "Reports", name)
    until(lambda: not any(e.is_running for e in cluster._ticker._schedule._entries.values()), "all is quiet")
    before = jobs(spark)
    feed(cluster, "Reports", [report("a"), report("b")])
    for name in names:
        seen(cluster, "Reports", name)
    assert jobs(spark) - before == 1
    for i, name in enumerate(names):
        assert [payload["id"] for _, payload in pull(cluster, name)] == [f"warm{i}", f"a{i}", f"b{i}"]


def test_a_failure_in_java_is_told_by_its_innermost_cause(spark: SparkSession) -> None:
    lang = spark.sparkContext._jvm.java.lang
    outer = lang.IllegalStateException("the job failed", lang.ArithmeticException("by zero"))
    problem = Py4JJavaError("An error occurred while calling o1.collectToPython.\n", outer)
    assert reason(problem) == "java.lang.ArithmeticException: by zero"


def test_a_refused_query_is_told_to_who_asks_and_not_on_the_terminal(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidQuery, match="Spark refuses the query"):
        run(cluster, "SELECT r.place + array(1) AS sum FROM Reports r")
    assert capfd.readouterr().err == ""
