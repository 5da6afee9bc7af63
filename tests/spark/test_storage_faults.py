"""Files damaged behind the cluster's back: what is told, what goes on, and that nothing is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.clusters import ME, feed, pull, run, running_cluster, seen, subscribe, until
from tocsin.datacluster.cluster import Cluster
from tocsin.errors import Unavailable

pytestmark = pytest.mark.spark

SCHEMA = """
CREATE ACTIVE DATASET Broken (n INT);
CREATE ACTIVE DATASET Cut (n INT);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
CREATE CONTINUOUS CHANNEL OnBroken(n INT) AS SELECT r.n FROM Broken r WHERE r.n > :n;
CREATE CONTINUOUS CHANNEL OnCut(n INT) AS SELECT r.n FROM Cut r WHERE r.n > :n;
CREATE CONTINUOUS CHANNEL OnBoth(n INT) AS SELECT r.n FROM Cut r JOIN Broken b ON r.n = b.n WHERE r.n > :n;
"""


def shown(cluster: Cluster) -> dict[str, Any]:
    return {view.name: view for view in (*cluster.datasets(ME), *cluster.channels(ME))}


def log_of(cluster: Cluster, directory: Path, name: str) -> Path:
    return next((directory / "datasets" / str(cluster._datasets[name].id) / "log").glob("*.log"))


def test_a_damaged_dataset_is_told_and_the_others_go_on(tmp_path: Path, spark: SparkSession) -> None:
    with running_cluster(tmp_path, spark) as cluster:
        run(cluster, SCHEMA)
        for name in ("OnBroken", "OnCut", "OnBoth"):
            subscribe(cluster, name, 0)
        for dataset in ("Broken", "Cut"):
            for n in (1, 2, 3, 4):
                feed(cluster, dataset, [{"n": n}])
        for channel, dataset in (("OnBroken", "Broken"), ("OnCut", "Cut"), ("OnBoth", "Cut")):
            seen(cluster, dataset, channel)
        before = pull(cluster, "OnCut")
        broken, cut = (log_of(cluster, tmp_path, name) for name in ("Broken", "Cut"))
    data = bytearray(broken.read_bytes())
    data[10] ^= 0xFF
    broken.write_bytes(data)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])

    with running_cluster(tmp_path, spark) as cluster:
        views, status = shown(cluster), cluster.status()
        assert "does not verify" in views["Broken"].problem
        assert views["Cut"].problem == "the records 3 to 4 were acknowledged and are no longer in the log"
        assert {n: views[n].state for n in ("OnBroken", "OnCut", "OnBoth")} == {
            "OnBroken": "failing", "OnCut": "running", "OnBoth": "failing",
        }  # fmt: skip
        assert status.is_ready
        assert "dataset Broken" in status.reason
        with pytest.raises(Unavailable, match="'Broken' is out of order"):
            feed(cluster, "Broken", [{"n": 5}])
        assert feed(cluster, "Cut", [{"n": 5}, {"n": 6}]).first == 5
        seen(cluster, "Cut", "OnCut")
        assert [p["n"] for _, p in pull(cluster, "OnCut")] == [p["n"] for _, p in before] + [5, 6]
        run(cluster, "DROP CHANNEL OnBroken CASCADE; DROP CHANNEL OnBoth CASCADE; DROP DATASET Broken;")
        assert cluster.status().reason.count("dataset") == 1


def test_a_directory_feed_reads_below_load_dir_and_is_counted(tmp_path: Path, spark: SparkSession) -> None:
    inbox = tmp_path / "open" / "inbox"
    inbox.mkdir(parents=True)
    with running_cluster(tmp_path / "data", spark, cluster__load_dir=str(tmp_path / "open")) as cluster:
        run(cluster, "CREATE DATASET D (n INT); CREATE FEED f INTO D FROM DIRECTORY 'inbox';")
        (inbox / ".draft").write_text(json.dumps({"n": 1}) + "\n" + json.dumps({"n": "x"}) + "\n")
        (inbox / ".draft").rename(inbox / "one.json")
        until(lambda: shown(cluster)["D"].head == 1, "the file's good record arrived")
        text = cluster.metrics.render().decode()
        assert 'tocsin_records_total{dataset="D"} 1.0' in text
        assert 'tocsin_rejected_records_total{dataset="D"} 1.0' in text
        run(cluster, "DROP FEED f; DROP DATASET D;")
        assert 'dataset="D"' not in cluster.metrics.render().decode()
