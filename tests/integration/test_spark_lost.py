"""Spark's Java process dies under a running cluster."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import httpx
import pytest

from support.processes import ClusterProcess, free_port

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(300)]

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
CREATE FEED files INTO Reports FROM DIRECTORY '{directory}';
CREATE CONTINUOUS CHANNEL Alerts(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind;
SUBSCRIBE TO Alerts('fire') ON b1
"""


class Asking(threading.Thread):
    """Sends a SELECT, a CHANNEL and a record again and again, and keeps what was answered."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.statuses, self.is_under_way = url, set[int](), threading.Event()

    def run(self) -> None:
        create = "CREATE OR REPLACE CONTINUOUS CHANNEL Copy() AS SELECT r.id FROM Reports r"
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as http:
            try:
                while True:
                    for text in ("SELECT count(*) AS c FROM Reports", create):
                        self.statuses.add(http.post("/statements", json={"text": text}).status_code)
                    http.post("/datasets/Reports/records", content=b'{"id": "a", "kind": "fire"}')
                    self.is_under_way.set()
            except httpx.HTTPError:
                return  # the cluster has ended


def java_of(cluster: ClusterProcess) -> int:
    return next(pid for pid in cluster.members() if Path(f"/proc/{pid}/comm").read_text().strip() == "java")


def test_the_cluster_ends_with_a_reason_for_who_supervises_it(tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    cluster = ClusterProcess(tmp_path / "data", free_port(), cluster__load_dir=str(tmp_path))
    try:
        cluster.wait_ready()
        schema = {"text": SCHEMA.format(directory=incoming)}
        httpx.post(f"{cluster.url}/statements", json=schema, timeout=120, trust_env=False).raise_for_status()
        asking = Asking(cluster.url)
        asking.start()
        assert asking.is_under_way.wait(120)
        os.kill(java_of(cluster), signal.SIGKILL)
        code = cluster._process.wait(120)
        asking.join()
        assert code == 1
        assert asking.statuses <= {200, 503}
        last = cluster.log.strip().splitlines()[-1]
        assert "Spark's Java process has ended" in last
        assert cluster.members() == []
    finally:
        cluster.kill()
