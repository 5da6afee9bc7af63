"""The same program on a real standalone cluster: executors in their own processes, channels of both strategies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(900)]

# A process has one Spark session, and the test session may have a local one: this runs in its own.
_PROGRAM = """
import json, sys
from pathlib import Path
from support.clusters import feed, pull, run, seen, subscribe
from tocsin.config import load
from tocsin.datacluster.cluster import Cluster

master, directory = sys.argv[1:]
conf = {"spark.executor.memory": "512m"}
cluster = Cluster(load(overrides={
    "cluster.data_dir": directory, "cluster.master": master, "cluster.driver_memory": "512m",
    "cluster.spark_conf": conf,
}))
cluster.open()
run(cluster, '''
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, x DOUBLE, y DOUBLE);
CREATE BROKER b1 AT 'http://127.0.0.1:9/nobody';
CREATE CONTINUOUS CHANNEL Near(kind STRING, x DOUBLE, y DOUBLE, radius DOUBLE) AS
    SELECT r.id FROM Reports r WHERE r.kind = :kind AND distance(r.x, r.y, :x, :y) < :radius;
CREATE CONTINUOUS CHANNEL Totals(kind STRING) AS
    SELECT count(*) AS c, max(r.x) AS far FROM Reports r WHERE r.kind = :kind;
''')
for radius in (50, 500):
    subscribe(cluster, "Near", "fire", 0, 0, radius)
subscribe(cluster, "Totals", "fire")
subscribe(cluster, "Totals", "calm")
records = [{"id": f"r{i}", "kind": "fire" if i % 2 else "flood", "x": 10.0 * i, "y": 0.0} for i in range(20)]
feed(cluster, "Reports", records)
for channel in ("Near", "Totals"):
    seen(cluster, "Reports", channel)
print(json.dumps({
    "master": cluster.status().spark["master"],
    "strategies": [cluster._channels[c].strategy for c in ("Near", "Totals")],
    "near": sorted(pull(cluster, "Near"), key=str),
    "totals": pull(cluster, "Totals"),
}))
cluster.close()
"""


def test_channels_of_both_strategies_run_on_a_cluster(tmp_path: Path) -> None:
    from standalone import standalone_cluster

    with standalone_cluster() as master:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, master, str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["master"] == master
    assert found["strategies"] == ["index", "join"]
    near = [(1, f"r{i}") for i in (1, 3)] + [(2, f"r{i}") for i in range(1, 20, 2)]
    assert sorted((backend, payload["id"]) for backend, payload in found["near"]) == sorted(near)
    assert found["totals"] == [[1, {"c": "10", "far": 190.0}]]
