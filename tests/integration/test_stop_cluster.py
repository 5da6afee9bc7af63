"""The cluster is told to stop while everything is under way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import ClusterProcess, free_port
from support.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(300)]

SCHEMA = """
CREATE ACTIVE DATASET Reports (id STRING, kind STRING, n BIGINT);
CREATE BROKER b1 AT 'http://127.0.0.1:9/notify';
CREATE FEED files INTO Reports FROM DIRECTORY '{directory}';
CREATE CONTINUOUS CHANNEL Alerts(kind STRING) AS SELECT r.id FROM Reports r WHERE r.kind = :kind;
CREATE CHANNEL Never(kind STRING) PERIOD '1h' AS SELECT r.id FROM Reports r WHERE r.kind = :kind;
CREATE CONTINUOUS CHANNEL Product(kind STRING) AS SELECT count(*) AS c FROM Reports r, Reports a, Reports b
    WHERE is_new(r) AND r.kind = :kind AND a.n + b.n > 3;
SUBSCRIBE TO Alerts('fire') ON b1; SUBSCRIBE TO Product('fire') ON b1; SUBSCRIBE TO Never('fire') ON b1
"""
ENDLESS = (
    "SELECT count(*) AS c FROM Reports a, Reports b, Reports c, Reports d, Reports e WHERE a.n + b.n > c.n + d.n + e.n"
)
RECORDS = "\n".join(f'{{"id": "{n}", "kind": "fire", "n": {n}}}' for n in range(50))
REQUESTS: dict[str, dict[str, Any]] = {
    "ingest": {"url": "/datasets/Reports/records", "content": RECORDS.encode()},
    "subscribe": {
        "url": "/subscriptions",
        "json": {"channel": "Alerts", "broker": "b1", "subscriptions": [{"arguments": ["x"]}]},
    },
    "short SELECT": {"url": "/statements", "json": {"text": "SELECT count(*) AS c FROM Reports"}},
    "endless SELECT": {"url": "/statements", "json": {"text": ENDLESS}},
    "waiting pull": {"url": "/brokers/b1/pull", "json": {"cursors": {"Never": None}, "wait_s": 30}},
}


class Asking(threading.Thread):
    """Sends one request again and again until the cluster has ended, and keeps what was answered."""

    def __init__(self, url: str, request: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.url, self.request, self.statuses = url, request, list[int]()

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=120, trust_env=False) as http:
            try:
                while True:
                    self.statuses.append(http.post(**self.request).status_code)
            except httpx.HTTPError:
                return  # there is nobody to ask any more


def test_it_stops_in_peace_and_answers_what_is_under_way(tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    cluster = ClusterProcess(
        tmp_path / "data",
        free_port(),
        cluster__load_dir=str(tmp_path),
        log__level="info",
        select__timeout="10m",
        channels__stop_wait="1s",
    )
    try:
        cluster.wait_ready()
        schema = {"text": SCHEMA.format(directory=incoming)}
        httpx.post(f"{cluster.url}/statements", json=schema, timeout=120, trust_env=False).raise_for_status()
        asking = {name: Asking(cluster.url, request) for name, request in REQUESTS.items()}
        for one in asking.values():
            one.start()
        until(lambda: len(asking["ingest"].statuses) >= 20, "the cluster is busy", 120)
        assert cluster.stop() == 0
        for one in asking.values():
            one.join()
        statuses = {name: set(one.statuses) for name, one in asking.items()}
        assert set().union(*statuses.values()) <= {200, 503}
        assert (statuses["endless SELECT"], statuses["waiting pull"]) == ({503}, {200})
        assert "Traceback" not in cluster.log
        assert " ERROR " not in cluster.log
        assert cluster.members() == []
    finally:
        cluster.kill()
