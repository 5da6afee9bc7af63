"""Windows seen through the views of a tick: nothing beyond them, nothing of another channel's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.clusters import ME, feed, pull, run, running_cluster, seen, subscribe
from tocsin.clock import VirtualClock
from tocsin.compiler.plan import Relation, View
from tocsin.datacluster.cluster import Cluster
from tocsin.datacluster.selecting import SelectLimits
from tocsin.datacluster.service import Wanted
from tocsin.datacluster.spark.relations import Relations, Window, rename_sql
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.errors import LimitExceeded, TocsinError, Unavailable
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType
from tocsin.tokens import Principal

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster"), spark) as running:
        run(
            running,
            "CREATE ACTIVE DATASET A (id STRING); CREATE ACTIVE DATASET K (key STRING, n INT) PRIMARY KEY (key)",
        )
        run(running, "CREATE BROKER b1 AT 'http://127.0.0.1:9/notify'")
        yield running


def counted(spark: SparkSession, relations: Relations, store: DatasetStore, view: View, window: Window) -> int:
    relation = Relation(f"tocsin_{store.spec.name}_{view.name}", store.spec.name, view)
    query, name = f"SELECT count(*) AS c FROM {relation.name}", store.spec.name.lower()
    with relations.binding() as binding:
        frame = spark.sql(binding.sql(query, (relation,), {name: store}, {name: window}))
    return int(frame.collect()[0]["c"])


def test_now_of_an_appending_dataset_ends_with_the_window(cluster: Cluster, spark: SparkSession) -> None:
    feed(cluster, "A", [{"id": f"{i}"} for i in range(3)])
    store = cluster._datasets["A"]
    through = store.head - 2
    assert counted(spark, Relations(spark), store, View.NOW, Window(0, through)) == through


def test_channels_with_other_windows_of_a_keyed_dataset_each_see_the_last_version_in_theirs(cluster: Cluster) -> None:
    for name in ("One", "Two"):
        run(cluster, f"CREATE CONTINUOUS CHANNEL {name}() AS SELECT k.key, k.n FROM K k")
        subscribe(cluster, name)
        cluster._ticker.remove(cluster._channels[name])
    feed(cluster, "K", [{"key": "ann", "n": 1}])
    one, two = cluster._channels["One"], cluster._channels["Two"]
    short = cluster._executor._windows(one, {"k": 1})
    feed(cluster, "K", [{"key": "ann", "n": 2}])
    long = cluster._executor._windows(two, {"k": 2})
    ticks = cluster._executor._execute([(one, short), (two, long)])
    assert [tick.problem for tick in ticks] == [None, None]
    assert [payload["n"] for _, payload in pull(cluster, "One")] == [1]
    assert [payload["n"] for _, payload in pull(cluster, "Two")] == [2]


def test_a_column_that_would_break_a_channel_is_refused_and_not_added(cluster: Cluster) -> None:
    run(cluster, "CREATE DATASET Left1 (id STRING, grade INT); CREATE ACTIVE DATASET Right1 (id STRING)")
    run(cluster, "CREATE CONTINUOUS CHANNEL Graded() AS SELECT r.id, grade FROM Right1 r JOIN Left1 l ON l.id = r.id")
    with pytest.raises(TocsinError):
        run(cluster, "ALTER DATASET Right1 ADD COLUMN grade INT")
    assert [c.name for c in cluster._datasets["Right1"].spec.columns] == ["id"]


def test_every_kept_result_is_selected_however_many_executions_made_them(cluster: Cluster) -> None:
    run(cluster, "CREATE CONTINUOUS CHANNEL Many() AS SELECT a.id FROM A a")
    subscribe(cluster, "Many")
    for i in range(12):
        feed(cluster, "A", [{"id": f"m{i}"}])
        seen(cluster, "A", "Many")
    (answer,) = cluster.execute("SELECT count(*) AS c FROM ManyResults", ME)
    assert answer.rows == (("12",),)


def test_a_text_that_looks_like_a_relation_stays_a_text() -> None:
    sql = "SELECT 'tocsin_a_new', 'it\\'s tocsin_a_new' FROM `tocsin_a_new` JOIN tocsin_a_new_before"
    renamed = rename_sql(sql, "tocsin_a_new", "v1")
    assert renamed == "SELECT 'tocsin_a_new', 'it\\'s tocsin_a_new' FROM v1 JOIN tocsin_a_new_before"


def test_a_text_with_a_variable_in_it_stays_that_text(cluster: Cluster) -> None:
    (answer,) = run(cluster, "SELECT '${env:HOME}' AS p, '${x}' AS q")
    assert answer.rows == (("${env:HOME}", "${x}"),)


def test_a_record_nested_too_deeply_is_a_dead_letter_and_spoils_no_batch(cluster: Cluster) -> None:
    deep = b'{"id": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    receipt = cluster.ingest("A", b'{"id": "before"}\n' + deep + b'\n{"id": "after"}', None, ME)
    assert (receipt.accepted, receipt.rejected) == (2, 1)
    assert receipt.problems[0].reason == "nested too deeply"


@pytest.mark.parametrize(
    ("query", "row"),
    [
        ("SELECT cast(substring(cast('é' AS BINARY), 1, 1) AS STRING) AS v", ("\ufffd",)),
        ("SELECT date_add(DATE '9999-12-31', 1) AS d, timestamp_seconds(400000000000) AS t",
         ("10000-01-01", "14645-06-30T15:06:40Z")),
        ("SELECT 1 AS i, count(*) AS c, cast(1.50 AS DECIMAL(9, 2)) AS d FROM Nothing", (1, "0", "1.50")),
    ],
)  # fmt: skip
def test_a_select_gives_any_value_in_the_form_of_its_type(cluster: Cluster, query: str, row: tuple[object]) -> None:
    run(cluster, "CREATE DATASET IF NOT EXISTS Nothing (id STRING)")
    (answer,) = run(cluster, query)
    assert answer.rows == (row,)


def test_a_column_called_like_the_clock_is_a_column(cluster: Cluster) -> None:
    (answer,) = run(cluster, "SELECT '{now}', year(now()) > 2000 AS later")
    assert (answer.columns, answer.rows) == (("{now}", "later"), (("{now}", True),))


def test_a_select_is_bounded_by_bytes_and_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cluster, "CREATE DATASET Plenty (id STRING)")
    feed(cluster, "Plenty", [{"id": f"{n:0100}"} for n in range(3000)])
    selecting = cluster._statements._selecting
    monkeypatch.setattr(selecting, "_limits", SelectLimits(10_000, 10_000, 30.0, 1 << 20))
    (answer,) = run(cluster, "SELECT id FROM Plenty")
    assert answer.is_truncated
    assert 50 < len(answer.rows) < 100
    with pytest.raises(LimitExceeded, match="bytes in a row"):
        run(cluster, "SELECT repeat(id, 1000) AS r FROM Plenty LIMIT 2")
    monkeypatch.setattr(selecting, "_limits", SelectLimits(10, 10_000, 0.5, 1 << 20))
    with pytest.raises(LimitExceeded, match="seconds a SELECT may run"):
        run(cluster, "SELECT count(*) AS c FROM Plenty a, Plenty b, Plenty c WHERE a.id < b.id AND b.id < c.id")
    assert not [t for t in threading.enumerate() if t.name == "select"]


def test_a_select_that_nobody_waits_for_is_cancelled(cluster: Cluster) -> None:
    run(cluster, "CREATE DATASET Numbers (n BIGINT)")
    feed(cluster, "Numbers", [{"n": n} for n in range(3000)])
    asked = iter([None, None, Unavailable("the sender has left")])

    def go_on() -> None:
        if problem := next(asked):
            raise problem

    with pytest.raises(Unavailable, match="left"):
        cluster.execute(
            "SELECT count(*) AS c FROM Numbers a, Numbers b, Numbers c WHERE a.n < b.n AND b.n < c.n", ME, go_on
        )
    assert not [t for t in threading.enumerate() if t.name == "select"]


def test_of_subscriptions_a_select_shows_ones_own(cluster: Cluster) -> None:
    run(cluster, "CREATE CONTINUOUS CHANNEL Owned(id STRING) AS SELECT a.id FROM A a WHERE a.id = :id")
    ann = Principal("ann", ("read", "subscribe:Owned"))
    subscribe(cluster, "Owned", "x")
    cluster.subscribe("Owned", "b1", [Wanted(["y"])], ann)
    query = "SELECT owner FROM OwnedSubscriptions ORDER BY owner"
    assert [cluster.execute(query, who)[0].rows for who in (ann, ME)] == [(("ann",),), (("ann",), ("local",))]


@pytest.mark.parametrize("key", [(), ("id",)], ids=["appending", "keyed"])
@pytest.mark.parametrize("view", [View.NOW, View.OLD, View.NOW_BEFORE])
def test_what_retention_let_go_is_not_seen_through_a_kept_view(
    spark: SparkSession, tmp_path: Path, view: View, key: tuple[str, ...]
) -> None:
    clock, relations = VirtualClock(1000.0), Relations(spark)
    spec = DatasetSpec("R", (Column("id", SqlType("STRING")),), primary_key=key, retain=Retention(60.0, None, None))
    store = DatasetStore(tmp_path, spec, clock, StoreOptions(segment_bytes=1, delete_after_s=0.0))
    for id in ("a", "b", "c"):
        store.append(pa.table({"id": [id]}))
    store.compact()
    window = Window(store.head, store.head)
    assert counted(spark, relations, store, view, window) == 3
    clock.advance(61)
    store.expire()
    assert counted(spark, relations, store, view, window) == store.now().num_rows == 0
    store.close()


def test_a_binding_keeps_all_its_views_however_many_and_leaves_few(spark: SparkSession, tmp_path: Path) -> None:
    store = DatasetStore(tmp_path, DatasetSpec("Many", (Column("id", SqlType("STRING")),)))
    store.append(pa.table({"id": [str(n) for n in range(4)]}))
    relations, relation = Relations(spark, kept=2), Relation("tocsin_many_new", "Many", View.NEW)
    with relations.binding() as binding:
        arms = [
            binding.sql("SELECT * FROM tocsin_many_new", (relation,), {"many": store}, {"many": Window(n, n + 1)})
            for n in range(4)
        ]
        frame = spark.sql(" UNION ALL ".join(arms))
    assert frame.count() == 4
    assert len([t for t in spark.catalog.listTables() if t.name.startswith("tocsin_many_new")]) == 2
    store.close()


def test_a_dropped_channel_leaves_no_join_behind(cluster: Cluster) -> None:
    run(cluster, "CREATE CONTINUOUS CHANNEL Joined(id STRING) AS SELECT a.id FROM A a WHERE a.id = concat(:id, '!')")
    subscribe(cluster, "Joined", "x")
    feed(cluster, "A", [{"id": "x!"}])
    seen(cluster, "A", "Joined")
    assert cluster._engine.join_plan(cluster._channels["Joined"].prepared)
    run(cluster, "DROP CHANNEL Joined CASCADE")
    assert "Joined" not in cluster._engine._joined
