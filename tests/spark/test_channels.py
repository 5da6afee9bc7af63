"""Channels on real Spark: what comes out for what went in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.clusters import BROKER, ME, feed, pull, run, running_cluster, seen, subscribe
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.subscribers import Subscribers
from tocsin.errors import BadArgument, InUse, InvalidQuery, NameTaken, StorageFull

pytestmark = pytest.mark.spark

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE, text STRING, n BIGINT);
CREATE DATASET Users (user STRING, x DOUBLE, y DOUBLE) PRIMARY KEY (user);
CREATE DATASET Shelters (name STRING, x DOUBLE, y DOUBLE) PRIMARY KEY (name);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
CREATE BROKER b2 AT 'http://127.0.0.1:9/notify';
"""


def report(id: str, kind: str = "fire", x: float = 0.0, y: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"id": id, "kind": kind, "x": x, "y": y, "radius": 100.0, "text": f"a {kind} here", "n": 2**60, **more}


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory: Path = tmp_path_factory.mktemp("cluster")
    with running_cluster(directory, spark) as running:
        run(running, SCHEMA)
        yield running


@pytest.fixture
def channel(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name for a channel of this test, dropped after it."""
    name = "C" + "".join(c for c in request.node.name if c.isalnum())[:40]
    yield name
    run(cluster, f"DROP CHANNEL IF EXISTS {name} CASCADE")


def test_equality_on_a_parameter_uses_the_index_and_shares_identical_subscriptions(
    cluster: Cluster, channel: str
) -> None:
    run(
        cluster,
        f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id, r.n FROM Reports r WHERE r.kind = :kind",
    )
    one, two = subscribe(cluster, channel, "fire"), subscribe(cluster, channel, "fire", broker="b2")
    other = subscribe(cluster, channel, "flood")
    assert one.backend == two.backend != other.backend
    feed(cluster, "Reports", [report("r1"), report("r2", "flood"), report("r3", "storm")])
    seen(cluster, "Reports", channel)
    assert cluster._channels[channel].strategy == "index"
    big = str(2**60)
    assert sorted(pull(cluster, channel)) == sorted(
        [(one.backend, {"id": "r1", "n": big}), (other.backend, {"id": "r2", "n": big})], key=str
    )
    assert pull(cluster, channel, broker="b2") == [(one.backend, {"id": "r1", "n": big})]


@pytest.mark.parametrize("index", [True, False], ids=["by index", "by join"])
def test_a_distance_to_a_place_with_a_radius_of_ones_own(cluster: Cluster, channel: str, index: bool) -> None:
    cluster._channels._options = type(cluster._channels._options)(index=index)
    try:
        run(
            cluster,
            f"""CREATE CONTINUOUS CHANNEL {channel}(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
                SELECT r.id FROM Reports r WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius""",
        )
    finally:
        cluster._channels._options = type(cluster._channels._options)()
    assert cluster._channels[channel].strategy == ("index" if index else "join")
    near, far = subscribe(cluster, channel, "fire", 0, 0, 100), subscribe(cluster, channel, "fire", 5000, 5000, 3000)
    feed(
        cluster,
        "Reports",
        [report("n1", x=99.9), report("edge", x=100.0), report("f1", x=4000, y=3000), report("n2", "flood")],
    )
    seen(cluster, "Reports", channel)
    assert sorted(pull(cluster, channel), key=str) == sorted(
        [(near.backend, {"id": "n1"}), (far.backend, {"id": "f1"})], key=str
    )


def test_the_users_own_moving_location(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(user STRING) AS
            SELECT r.id, distance(r.x, r.y, u.x, u.y) AS metres
            FROM Reports r JOIN Users u ON distance(r.x, r.y, u.x, u.y) < r.radius WHERE u.user = :user""",
    )
    feed(cluster, "Users", [{"user": "ada", "x": 0, "y": 0}, {"user": "bob", "x": 900, "y": 0}])
    ada, bob = subscribe(cluster, channel, "ada"), subscribe(cluster, channel, "bob")
    feed(cluster, "Reports", [report("m1", x=30, y=40)])
    seen(cluster, "Reports", channel)
    feed(cluster, "Users", [{"user": "bob", "x": 30, "y": 40}])
    feed(cluster, "Reports", [report("m2", x=30, y=40)])
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [
        (ada.backend, {"id": "m1", "metres": 50.0}),
        (ada.backend, {"id": "m2", "metres": 50.0}),
        (bob.backend, {"id": "m2", "metres": 0.0}),
    ]


def test_the_three_nearest_shelters_in_one_notification(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS
            SELECT r.id, n.shelters FROM Reports r, LATERAL (
                SELECT collect_list(struct(name, d)) AS shelters FROM (
                    SELECT s.name, distance(s.x, s.y, r.x, r.y) AS d FROM Shelters s ORDER BY d LIMIT 3)) n
            WHERE r.kind = :kind""",
    )
    feed(cluster, "Shelters", [{"name": f"s{i}", "x": 10.0 * i, "y": 0.0} for i in range(6)])
    one = subscribe(cluster, channel, "fire")
    feed(cluster, "Reports", [report("s1", x=50.0)])
    seen(cluster, "Reports", channel)
    ((backend, payload),) = pull(cluster, channel)
    assert backend == one.backend
    assert sorted((s["name"], s["d"]) for s in payload["shelters"]) == [("s3", 20.0), ("s4", 10.0), ("s5", 0.0)]


def test_an_instant_in_a_payload_is_what_a_select_shows(cluster: Cluster, channel: str) -> None:
    run(cluster, "CREATE ACTIVE DATASET Instants (id STRING, at TIMESTAMP, all ARRAY<TIMESTAMP>)")
    run(
        cluster,
        f"CREATE CONTINUOUS CHANNEL {channel}(id STRING) AS SELECT i.at, i.all FROM Instants i WHERE i.id = :id",
    )
    subscribe(cluster, channel, "x")
    instants = ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456Z", None]
    feed(cluster, "Instants", [{"id": "x", "at": at, "all": instants[1:2]} for at in instants])
    seen(cluster, "Instants", channel)
    assert [payload for _, payload in pull(cluster, channel)] == [{"at": at, "all": instants[1:2]} for at in instants]
    (selected,) = run(cluster, "SELECT at FROM Instants ORDER BY at NULLS LAST")
    assert [at for (at,) in selected.rows] == instants


def test_the_nearest_may_be_ordered_by_what_is_outside(cluster: Cluster, channel: str) -> None:
    nearest = """FROM Reports r CROSS JOIN LATERAL
                 (SELECT h.name FROM Havens h ORDER BY distance(h.x, h.y, r.x, r.y) LIMIT 2) h WHERE r.kind ="""
    run(cluster, "CREATE DATASET Havens (name STRING, x DOUBLE, y DOUBLE)")
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id, h.name {nearest} :kind")
    assert cluster._channels[channel].strategy == "index"
    feed(cluster, "Havens", [{"name": f"h{i}", "x": 10.0 * i, "y": 0.0} for i in range(6)])
    one = subscribe(cluster, channel, "nearby")
    feed(cluster, "Reports", [report("n1", kind="nearby", x=29.0)])
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "n1", "name": name}) for name in ("h2", "h3")]
    (selected,) = run(cluster, f"SELECT h.name {nearest} 'nearby' ORDER BY h.name")
    assert selected.rows == (("h2",), ("h3",))


def test_two_driving_datasets_tell_a_pair_once(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        """CREATE DATASET IF NOT EXISTS Fires (id STRING, x DOUBLE, y DOUBLE);
           CREATE DATASET IF NOT EXISTS Walkers (user STRING, x DOUBLE, y DOUBLE) PRIMARY KEY (user)""",
    )
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(user STRING) AS
            SELECT f.id, w.user FROM Fires f, Walkers w
            WHERE (is_new(f) OR is_new(w)) AND w.user = :user AND distance(f.x, f.y, w.x, w.y) < 100""",
    )
    one = subscribe(cluster, channel, "ada")
    feed(cluster, "Walkers", [{"user": "ada", "x": 1000, "y": 0}])
    feed(cluster, "Fires", [{"id": "f1", "x": 0, "y": 0}])
    seen(cluster, "Fires", channel)
    seen(cluster, "Walkers", channel)
    assert pull(cluster, channel) == []
    for x in (50, 40, 30):  # walks up to the fire, and stays beside it
        feed(cluster, "Walkers", [{"user": "ada", "x": x, "y": 0}])
        seen(cluster, "Walkers", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "f1", "user": "ada"})]
    feed(cluster, "Walkers", [{"user": "ada", "x": 500, "y": 0}])
    seen(cluster, "Walkers", channel)
    feed(cluster, "Walkers", [{"user": "ada", "x": 50, "y": 0}])
    seen(cluster, "Walkers", channel)
    assert len(pull(cluster, channel)) == 2


def test_aggregates_group_by_subscription(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS
            SELECT count(*) AS c, max(r.x) AS furthest FROM Reports r WHERE r.kind = :kind""",
    )
    fire, flood = subscribe(cluster, channel, "fire"), subscribe(cluster, channel, "flood")
    feed(cluster, "Reports", [report("a1", x=1), report("a2", x=2), report("a3", "flood", x=7)])
    seen(cluster, "Reports", channel)
    assert sorted(pull(cluster, channel), key=str) == sorted(
        [(fire.backend, {"c": "2", "furthest": 2.0}), (flood.backend, {"c": "1", "furthest": 7.0})], key=str
    )


def test_keywords_ranges_and_lists(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(word STRING, kinds ARRAY<STRING>, low DOUBLE, high DOUBLE) AS
            SELECT r.id FROM Reports r
            WHERE has_word(r.text, :word) AND r.kind IN (:kinds) AND r.x BETWEEN :low AND :high""",
    )
    assert cluster._channels[channel].strategy == "index"
    one = subscribe(cluster, channel, "Smoke", ["fire", "gas"], 0, 10)
    reports = [
        report("k1", x=5, text="thick SMOKE!"),
        report("k2", x=5, text="smokeless"),
        report("k3", "flood", x=5, text="smoke"),
        report("k4", "gas", x=10, text="smoke, gas"),
        report("k5", x=10.5, text="smoke"),
    ]
    feed(cluster, "Reports", reports)
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "k1"}), (one.backend, {"id": "k4"})]


def test_a_periodic_channel_sees_what_came_between_ticks_once(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CHANNEL {channel}() PERIOD '300ms' AS SELECT r.id FROM Reports r")
    one = subscribe(cluster, channel)
    for i in range(5):
        feed(cluster, "Reports", [report(f"p{i}")])
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": f"p{i}"}) for i in range(5)]


def test_a_subscription_ends_and_comes_back_with_its_stream(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    first = subscribe(cluster, channel, "fire")
    feed(cluster, "Reports", [report("u1")])
    seen(cluster, "Reports", channel)
    assert cluster.unsubscribe([first.id], ME) == 1
    feed(cluster, "Reports", [report("u2")])
    seen(cluster, "Reports", channel)
    again = subscribe(cluster, channel, "fire")
    feed(cluster, "Reports", [report("u3")])
    seen(cluster, "Reports", channel)
    assert again.backend == first.backend
    assert pull(cluster, channel, again.position) == [(again.backend, {"id": "u3"})]


def test_replacing_keeps_the_subscriptions_if_the_parameters_stay(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    one = subscribe(cluster, channel, "fire")
    run(
        cluster,
        f"""CREATE OR REPLACE CONTINUOUS CHANNEL {channel}(kind STRING) AS
            SELECT upper(r.id) AS id FROM Reports r WHERE r.kind = :kind""",
    )
    feed(cluster, "Reports", [report("x1")])
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "X1"})]
    answer = run(
        cluster,
        f"CREATE OR REPLACE CONTINUOUS CHANNEL {channel}(k STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :k",
    )
    assert "dropped" in answer[0].message
    assert cluster._channels[channel].subscriptions.backends == 0


def test_a_subscription_made_while_a_replacement_loads_its_index_counts(
    cluster: Cluster, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    early, late = [subscribe(cluster, channel, "fire")], []
    load = Subscribers.load_backends

    def slow(self: Subscribers, tx: Any, channel_id: int, after: int | None = None) -> int:
        version = load(self, tx, channel_id, after)
        if after is None and not late:
            late.append(subscribe(cluster, channel, "flood"))
        return version

    monkeypatch.setattr(Subscribers, "load_backends", slow)
    condition = "r.kind = :kind AND length(:kind) > 0"
    run(
        cluster,
        f"CREATE OR REPLACE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE {condition}",
    )
    assert len(late) == 1, "the replacement has an index of its own"
    feed(cluster, "Reports", [report("l1"), report("l2", "flood")])
    seen(cluster, "Reports", channel)
    assert sorted(pull(cluster, channel)) == [(early[0].backend, {"id": "l1"}), (late[0].backend, {"id": "l2"})]
    live = cluster._channels[channel]
    assert (live.subscriptions.subscriptions, live.subscriptions.backends) == (2, 2)
    assert len(list(cluster._channels._directory(live.id).iterdir())) == 1


def test_a_replacement_that_fails_leaves_the_channel_running(
    cluster: Cluster, channel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    one = subscribe(cluster, channel, "fire")
    for step in ("replace_channel", "create_channel", "drop_channel"):
        monkeypatch.setattr(catalog, step, disk_is_full)
    for parameter in ("kind", "other"):
        text = f"{channel}({parameter} STRING) AS SELECT r.x FROM Reports r WHERE r.kind = :{parameter}"
        with pytest.raises(StorageFull):
            run(cluster, f"CREATE OR REPLACE CONTINUOUS CHANNEL {text}")
    with pytest.raises(StorageFull):
        run(cluster, f"DROP CHANNEL {channel} CASCADE")
    monkeypatch.undo()
    feed(cluster, "Reports", [report("f1")])
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "f1"})]


def disk_is_full(*_: Any, **__: Any) -> None:
    raise StorageFull("no space left")


def test_a_channel_that_is_subscribed_to_is_dropped_only_with_its_subscriptions(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    held = sorted(subscribe(cluster, channel, kind).id for kind in ("a", "b", "c", "d"))
    with pytest.raises(InUse, match=r"4 subscriptions .*CASCADE") as refused:
        run(cluster, f"DROP CHANNEL {channel}")
    assert all(id in str(refused.value) for id in held[:3])
    assert cluster._channels[channel].subscriptions.subscriptions == 4
    run(cluster, f"DROP CHANNEL {channel} CASCADE")
    assert channel not in cluster._channels
    assert cluster.subscriptions(ME, None, None, 100, None) == []


def test_a_channels_tables_and_datasets_do_not_hide_each_other(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT r.id FROM Reports r")
    for name in (channel, f"{channel}Results", f"{channel}subscriptions"):
        with pytest.raises(NameTaken, match=f"channel {channel}"):
            run(cluster, f"CREATE DATASET {name} (id STRING)")
    run(cluster, "CREATE DATASET LaterResults (id STRING)")
    with pytest.raises(NameTaken, match="dataset LaterResults"):
        run(cluster, "CREATE CONTINUOUS CHANNEL later() AS SELECT r.id FROM Reports r")


def test_a_channel_that_no_longer_compiles_is_failing_and_the_others_run(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT r.id, upper(r.kind) AS kind FROM Reports r WHERE r.kind = :kind"
    with running_cluster(tmp_path, spark) as running:
        run(running, SCHEMA)
        for name in ("Old", "Other"):
            run(running, f"CREATE CONTINUOUS CHANNEL {name}(kind STRING) AS {query}")
        old, other = subscribe(running, "Old", "fire"), subscribe(running, "Other", "fire")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger, ledger:
        ledger.execute("UPDATE entry SET spec = replace(spec, 'upper', 'removed') WHERE name_key = 'old'")
    with running_cluster(tmp_path, spark) as running:
        feed(running, "Reports", [report("o1")])
        seen(running, "Reports", "Other")
        assert pull(running, "Other") == [(other.backend, {"id": "o1", "kind": "FIRE"})]
        view = next(c for c in running.channels(ME) if c.name == "Old")
        assert (view.state, view.subscriptions) == ("failing", 1)
        assert "removed" in str(view.problem)
        assert "cannot be compiled" in run(running, "EXPLAIN CHANNEL Old")[0].message
        with pytest.raises(InvalidQuery, match="removed"):
            run(running, "RESUME CHANNEL Old")
        run(running, f"CREATE OR REPLACE CONTINUOUS CHANNEL Old(kind STRING) AS {query}")
        seen(running, "Reports", "Old")
        assert pull(running, "Old") == [(old.backend, {"id": "o1", "kind": "FIRE"})]


def test_a_paused_channel_waits_and_then_sees_everything(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT r.id FROM Reports r")
    one = subscribe(cluster, channel)
    run(cluster, f"PAUSE CHANNEL {channel}")
    feed(cluster, "Reports", [report("w1")])
    assert pull(cluster, channel) == []
    run(cluster, f"RESUME CHANNEL {channel}")
    seen(cluster, "Reports", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "w1"})]


@pytest.mark.parametrize("by", ["index", "join"])
def test_what_explain_and_describe_tell(cluster: Cluster, channel: str, by: str) -> None:
    condition = {"index": "r.kind = :kind", "join": "(r.kind = :kind OR r.kind = concat(:kind, '!'))"}[by]
    run(
        cluster,
        f"""CREATE CHANNEL {channel}(kind STRING) PERIOD '100ms' RETAIN '2h' AS
            SELECT r.id, r.n, struct(r.x) AS place FROM Reports r WHERE {condition} AND r.x < 50""",
    )
    subscribe(cluster, channel, "fire")
    feed(cluster, "Reports", [report("e1"), report("e2", "flood"), report("e3", x=60)])
    seen(cluster, "Reports", channel)
    (newest,) = cluster.explain(channel, ME)["executions"]
    assert (newest["considered"], newest["matched"]) == (3, 1)  # three came, one of them matches
    (told,) = run(cluster, f"EXPLAIN CHANNEL {channel}")
    assert "1 matched in 3 new records, 1 row" in told.message
    assert ("Spark's plan:" in told.message and "Join" in told.message) == (by == "join")
    (described,) = run(cluster, f"DESCRIBE {channel}")
    assert described.message.startswith(f"CREATE CHANNEL {channel}(kind STRING) PERIOD '100ms' RETAIN '2h' AS")
    assert described.rows == (
        ("kind", "STRING", "parameter"),
        ("id", "STRING", "result"),
        ("n", "BIGINT", "result"),
        ("place", "struct<x:double>", "result"),
    )


def test_ticks_and_queries_have_pools_of_their_own(cluster: Cluster, channel: str, spark: SparkSession) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT count(*) AS c FROM Reports r")
    subscribe(cluster, channel)
    feed(cluster, "Reports", [report("q1")])
    seen(cluster, "Reports", channel)
    run(cluster, "SELECT kind, count(*) AS c FROM Reports GROUP BY kind")
    pools = spark.sparkContext._jsc.sc().getAllPools()
    names = {pools.apply(i).name() for i in range(pools.size())}
    assert "select" in names
    assert names & {"tick_0", "tick_1"}


def test_bad_statements_change_nothing(cluster: Cluster, channel: str) -> None:
    before = {d.name for d in cluster.datasets(ME)}, {c.name for c in cluster.channels(ME)}
    with pytest.raises(InvalidQuery, match="line 2"):
        run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS\n SELECT r.nothing FROM Reports r")
    with pytest.raises(InvalidQuery):
        run(
            cluster,
            f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT java_method('java.lang.System', 'exit') FROM Reports r",
        )
    with pytest.raises(InUse, match="in use by"):
        run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT r.id FROM Reports r; DROP DATASET Reports")
    run(cluster, f"DROP CHANNEL {channel}")
    assert ({d.name for d in cluster.datasets(ME)}, {c.name for c in cluster.channels(ME)}) == before


def test_records_that_do_not_fit_go_to_the_dead_letters(cluster: Cluster) -> None:
    receipt = cluster.ingest("Reports", b'{"id": "ok"}\nnonsense\n{"id": 5}\n', "dl-1", ME)
    assert (receipt.accepted, receipt.rejected) == (1, 2)
    again = cluster.ingest("Reports", b'{"id": "ok"}\nnonsense\n{"id": 5}\n', "dl-1", ME)
    assert again.is_duplicate
    letters = run(cluster, "SELECT raw, reason FROM DeadLetters WHERE dataset = 'Reports' ORDER BY raw")[0].rows
    assert [raw for raw, _ in letters] == ["nonsense", '{"id": 5}'] or [raw for raw, _ in letters] == [
        '{"id": 5}',
        "nonsense",
    ]


def test_a_radius_beyond_the_limit_is_refused(cluster: Cluster, channel: str) -> None:
    run(
        cluster,
        f"""CREATE CONTINUOUS CHANNEL {channel}(x DOUBLE, y DOUBLE, radius DOUBLE) AS
            SELECT r.id FROM Reports r WHERE distance(r.x, r.y, :x, :y) < :radius""",
    )
    with pytest.raises(BadArgument, match="radius"):
        subscribe(cluster, channel, 0, 0, 1e9)


def test_select_reads_datasets_results_and_subscriptions(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    cluster.subscribe(channel, BROKER, [Wanted(["fire"]), Wanted(["flood"])], ME)
    feed(cluster, "Reports", [report("sel1"), report("sel2", "flood")])
    seen(cluster, "Reports", channel)
    (answer,) = run(cluster, f"SELECT result FROM {channel}Results ORDER BY result")
    assert answer.rows == (('{"id":"sel1"}',), ('{"id":"sel2"}',))
    (answer,) = run(cluster, f"SELECT count(*) AS c FROM {channel}Subscriptions")
    assert answer.rows == (("2",),)
    (answer,) = run(cluster, "SELECT kind, count(*) AS c FROM Reports WHERE id LIKE 'sel%' GROUP BY kind ORDER BY kind")
    assert answer.rows == (("fire", "1"), ("flood", "1"))


def test_explain_tells_the_strategy_the_sql_and_the_counts(cluster: Cluster, channel: str) -> None:
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind")
    subscribe(cluster, channel, "fire")
    feed(cluster, "Reports", [report("e1"), report("e2", "flood")])
    seen(cluster, "Reports", channel)
    facts = cluster.explain(channel, ME)
    assert (facts["strategy"], facts["distinct_parameter_sets"]) == ("index", 1)
    assert facts["executions"][0]["matched"] == 1
    assert "SELECT" in facts["sql"]


def test_adding_a_column_keeps_old_records_and_channels(cluster: Cluster, channel: str) -> None:
    run(cluster, "CREATE ACTIVE DATASET IF NOT EXISTS Wide (id STRING)")
    run(cluster, f"CREATE CONTINUOUS CHANNEL {channel}() AS SELECT w.* FROM Wide w")
    one = subscribe(cluster, channel)
    feed(cluster, "Wide", [{"id": "a"}])
    seen(cluster, "Wide", channel)
    run(cluster, "ALTER DATASET Wide ADD COLUMN extra INT")
    feed(cluster, "Wide", [{"id": "b", "extra": 7}])
    seen(cluster, "Wide", channel)
    assert pull(cluster, channel) == [(one.backend, {"id": "a"}), (one.backend, {"id": "b", "extra": 7})]
    (answer,) = run(cluster, "SELECT id, extra FROM Wide ORDER BY id")
    assert answer.rows == (("a", None), ("b", 7))


def test_deleting_a_key_makes_it_unknown(cluster: Cluster) -> None:
    feed(cluster, "Users", [{"user": "zoe", "x": 1, "y": 1}])
    run(cluster, "DELETE FROM Users WHERE user = 'zoe'")
    (answer,) = run(cluster, "SELECT count(*) AS c FROM Users WHERE user = 'zoe'")
    assert answer.rows == (("0",),)
