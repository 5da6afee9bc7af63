"""From a committed execution to a broker: notices, pulls, acknowledgements, moves and gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.clusters import ME, feed, pull, run, running_cluster, seen, subscribe, until
from support.http_broker import HttpBroker, http_broker
from support.processes import free_port
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.service import Wanted
from tocsin.errors import AlreadyExists, BadArgument
from tocsin.model.position import START, Position
from tocsin.tokens import verify

pytestmark = pytest.mark.spark

SETTINGS = {"outbox__backoff_min": "20ms", "outbox__backoff_max": "100ms", "outbox__push_max_bytes": "100 B"}
SCHEMA = "CREATE ACTIVE DATASET Reports (id STRING, kind STRING)"


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), spark, **SETTINGS) as running:
        run(running, SCHEMA)
        yield running


@pytest.fixture
def web() -> Iterator[HttpBroker]:
    with http_broker() as broker:
        yield broker


@pytest.fixture
def name(cluster: Cluster) -> Iterator[str]:
    """A channel by kind for this test; it and its brokers go afterwards."""
    run(cluster, "CREATE CONTINUOUS CHANNEL Alerts(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    yield "Alerts"
    for view in cluster.channels(ME):
        run(cluster, f"DROP CHANNEL {view.name} CASCADE")
    for broker in cluster.brokers(ME):
        run(cluster, f"DROP BROKER {broker.name}")


def brokers(cluster: Cluster, **urls: str) -> None:
    for name, url in urls.items():
        run(cluster, f"CREATE BROKER {name} AT '{url}'")


def report(cluster: Cluster, channel: str, *ids: str, kind: str = "fire") -> None:
    feed(cluster, "Reports", [{"id": id, "kind": kind} for id in ids])
    seen(cluster, "Reports", channel)


def ids(cluster: Cluster, channel: str, broker: str = "b1", after: Position = START) -> list[str]:
    return [payload["id"] for _, payload in pull(cluster, channel, after, broker)]


def broker_view(cluster: Cluster, name: str) -> Any:
    return next(b for b in cluster.brokers(ME) if b.name == name)


def test_a_broker_is_told_ids_and_counts_of_its_own(cluster: Cluster, name: str, web: HttpBroker) -> None:
    brokers(cluster, b1=web.url, b2="http://127.0.0.1:9/nobody")
    fire, flood = subscribe(cluster, name, "fire"), subscribe(cluster, name, "flood")
    subscribe(cluster, name, "storm", broker="b2")
    kinds = {"a": "fire", "b": "flood", "c": "fire", "d": "storm", "e": "quake"}
    feed(cluster, "Reports", [{"id": id, "kind": kind} for id, kind in kinds.items()])
    until(lambda: sum(n["count"] for n in web.about(name)) == 3, "the broker is told of three results")
    (notice,) = web.notices
    assert notice["backends"] == [[fire.backend, 2], [flood.backend, 1]]
    assert "results" not in notice
    (page,) = cluster.pull("b1", {name: START}, ME)
    assert page.through <= Position.parse(notice["through"])
    assert [json.loads(r.payload)["id"] for r in page.results] == ["a", "b", "c"]
    secret = cluster._secret
    assert {verify(t.removeprefix("Bearer "), secret).capabilities for t in web.tokens} == {("notify",)}


@pytest.mark.parametrize("fault", ["refuses connections", "answers 503"])
def test_a_broker_that_does_not_take_a_notice_is_tried_again_until_it_does(
    cluster: Cluster, name: str, fault: str
) -> None:
    port = free_port()
    brokers(cluster, b1=f"http://127.0.0.1:{port}/notify")
    one = subscribe(cluster, name, "fire")
    server = HttpBroker(port) if fault == "answers 503" else None
    if server:
        server.status = 503
    report(cluster, name, "a")
    broker_id = cluster._brokers.id_of("b1")
    until(lambda: cluster._notifier._pauses.get(broker_id) and cluster._notifier._pauses[broker_id].failures >= 3,
          "three tries")  # fmt: skip
    view = broker_view(cluster, "b1")
    assert view.waiting_notices == 1
    assert ("503" in view.problem) if server else ("Connect" in view.problem)
    server = server or HttpBroker(port)
    server.status = 204
    try:
        until(lambda: broker_view(cluster, "b1").waiting_notices == 0, "the notice is delivered")
        assert [n["backends"] for n in server.notices] == [[[one.backend, 1]]]
        assert broker_view(cluster, "b1").problem is None
    finally:
        server.close()


def test_a_broker_that_hangs_delays_only_itself(cluster: Cluster, name: str, web: HttpBroker) -> None:
    with http_broker() as hanging:
        hanging.gate.clear()
        brokers(cluster, slow=hanging.url, b1=web.url)
        subscribe(cluster, name, "fire", broker="slow")
        report(cluster, name, "first")
        until(lambda: cluster._notifier._busy, "a notice is on its way to the broker that hangs")
        subscribe(cluster, name, "fire")
        report(cluster, name, "second")
        until(lambda: web.about(name), "the other broker is told")
        hanging.gate.set()
        until(lambda: broker_view(cluster, "slow").waiting_notices == 0, "the one that hung is told too")
        assert sum(n["count"] for n in hanging.about(name)) == 2


def test_a_push_channel_carries_payloads_up_to_its_limit(cluster: Cluster, name: str, web: HttpBroker) -> None:
    run(
        cluster,
        "CREATE CONTINUOUS PUSH CHANNEL Pushed(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind",
    )
    brokers(cluster, b1=web.url)
    one = subscribe(cluster, "Pushed", "fire")
    report(cluster, "Pushed", "a", "b")
    until(lambda: web.notices, "the first notice")
    (pushed,) = web.notices
    assert [(r["backends"], r["payload"]) for r in pushed["results"]] == [
        ([one.backend], {"id": "a"}),
        ([one.backend], {"id": "b"}),
    ]
    (page,) = cluster.pull("b1", {"Pushed": START}, ME)
    assert [(r["id"], r["position"]) for r in pushed["results"]] == [(r.id, str(r.position)) for r in page.results]
    many = [f"m{i:010}" for i in range(20)]  # 20 bytes of payload each
    report(cluster, "Pushed", *many)
    until(lambda: len(web.notices) == 2, "the second notice")
    carried = [r["payload"]["id"] for r in web.notices[1]["results"]]
    assert web.notices[1]["count"] == 20
    assert carried == many[:5]
    last = Position.parse(web.notices[1]["results"][-1]["position"])
    assert ids(cluster, "Pushed", after=last) == many[5:]
    report(cluster, "Pushed", "x" * 200)
    until(lambda: len(web.notices) == 3, "the third notice")
    assert (web.notices[2]["count"], web.notices[2]["results"]) == (1, [])


def test_notices_outlive_the_process(spark: SparkSession, tmp_path: Path) -> None:
    port = free_port()
    with running_cluster(tmp_path, spark, **SETTINGS) as cluster:
        run(cluster, SCHEMA)
        run(cluster, "CREATE CONTINUOUS CHANNEL Alerts(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
        brokers(cluster, b1=f"http://127.0.0.1:{port}/notify")
        one = subscribe(cluster, "Alerts", "fire")
        report(cluster, "Alerts", "a")
        before = pull(cluster, "Alerts")
    with http_broker(port) as web, running_cluster(tmp_path, spark, **SETTINGS) as cluster:
        until(lambda: web.notices, "the notice of the life before")
        assert [(n["channel"], n["backends"]) for n in web.notices] == [("Alerts", [[one.backend, 1]])]
        assert pull(cluster, "Alerts") == before == [(one.backend, {"id": "a"})]


def test_pulling_again_from_a_position_gives_the_same(cluster: Cluster, name: str) -> None:
    brokers(cluster, b1="http://127.0.0.1:9/nobody")
    subscribe(cluster, name, "fire")
    for batch in ("ab", "c", "def"):
        report(cluster, name, *batch)
    (whole,) = cluster.pull("b1", {name: START}, ME)
    assert [json.loads(r.payload)["id"] for r in whole.results] == list("abcdef")
    for i, result in enumerate(whole.results):
        (rest,) = cluster.pull("b1", {name: result.position}, ME)
        assert rest.results == whole.results[i + 1 :]
    taken, cursor = [], START
    while True:
        (page,) = cluster.pull("b1", {name: cursor}, ME, max_rows=2)
        taken += page.results
        cursor = page.through
        if page.is_end:
            break
    assert tuple(taken) == whole.results
    assert [r.position for r in taken] == sorted({r.position for r in taken})


def test_acknowledging_is_a_high_water_mark(cluster: Cluster, name: str) -> None:
    brokers(cluster, b1="http://127.0.0.1:9/nobody")
    subscribe(cluster, name, "fire")
    report(cluster, name, "a", "b")
    first, second = (r.position for r in cluster.pull("b1", {name: START}, ME)[0].results)
    assert cluster.acknowledged("b1", ME) == {}
    cluster.acknowledge("b1", {name: second}, ME)
    cluster.acknowledge("b1", {name: first}, ME)
    assert cluster.acknowledged("b1", ME) == {name: second}
    with pytest.raises(BadArgument):
        cluster.acknowledge("b1", {name: Position.end_of(second.execution + 1)}, ME)
    assert ids(cluster, name) == ["a", "b"]


def test_a_moved_subscription_goes_on_at_its_new_broker(cluster: Cluster, name: str, web: HttpBroker) -> None:
    brokers(cluster, b1="http://127.0.0.1:9/nobody", b2=web.url)
    mine, other = subscribe(cluster, name, "fire"), subscribe(cluster, name, "flood")
    report(cluster, name, "a")
    assert (ids(cluster, name), ids(cluster, name, "b2")) == (["a"], [])
    answer = run(cluster, f"CHANGE SUBSCRIPTION '{mine.id}' TO b2")[0]
    (row,) = answer.rows
    assert row[:2] == (mine.id, mine.backend)
    report(cluster, name, "b")
    report(cluster, name, "c", kind="flood")
    assert ids(cluster, name) == ["c"]
    assert ids(cluster, name, "b2", Position.parse(row[2])) == ["b"]
    until(lambda: web.about(name), "the new broker is told")
    assert [n["backends"] for n in web.about(name)] == [[[mine.backend, 1]]]
    missed = cluster.replay(name, mine.backend, START, Position.parse(row[2]), 100, ME)
    assert [json.loads(r.payload)["id"] for r in missed.results] == ["a"]
    assert other.backend not in {b for r in missed.results for b in r.backends}


def test_asking_for_a_subscription_again_changes_nothing(cluster: Cluster, name: str) -> None:
    brokers(cluster, b1="http://127.0.0.1:9/nobody", b2="http://127.0.0.1:9/nobody")
    (first,) = cluster.subscribe(name, "b1", [Wanted(["fire"], "mine")], ME)
    again = cluster.subscribe(name, "b1", [Wanted(["fire"], "mine"), Wanted(["fire"], "mine")], ME)
    assert again == [first, first]
    with pytest.raises(AlreadyExists):
        cluster.subscribe(name, "b2", [Wanted(["fire"], "mine")], ME)
    assert cluster._channels[name].subscriptions.subscriptions == 1
    report(cluster, name, "a")
    assert (ids(cluster, name), ids(cluster, name, "b2")) == (["a"], [])


def test_what_retention_took_is_told_as_a_gap(cluster: Cluster, name: str) -> None:
    brokers(cluster, b1="http://127.0.0.1:9/nobody")
    query = "SELECT r.id FROM Reports r WHERE r.kind = :kind"
    run(cluster, f"CREATE CONTINUOUS CHANNEL Short(kind STRING) RETAIN 3 RECORDS AS {query}")
    one = subscribe(cluster, "Short", "fire")
    for batch in ("ab", "c", "d", "e"):
        report(cluster, "Short", *batch)
    kept = cluster.pull("b1", {"Short": START}, ME)[0].results
    cluster._housekeeping.round()
    (page,) = cluster.pull("b1", {"Short": START}, ME)
    assert page.gap is not None
    assert (page.gap.after, page.gap.count, page.gap.reason) == (START, 2, "retention")
    assert kept[1].position <= page.gap.through < kept[2].position
    assert page.results == kept[2:]
    assert [json.loads(r.payload)["id"] for r in page.results] == ["c", "d", "e"]
    (rest,) = cluster.pull("b1", {"Short": page.gap.through}, ME)
    assert rest.gap is None
    assert rest.results == kept[2:]
    replayed = cluster.replay("Short", one.backend, START, None, 100, ME)
    assert replayed.gap == page.gap
