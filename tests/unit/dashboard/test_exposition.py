from __future__ import annotations

from tocsin.dashboard import exposition
from tocsin.datacluster.metrics import Metrics


def test_what_the_cluster_writes_is_read_back() -> None:
    metrics = Metrics()
    metrics.matched("ByKind", matched=7, considered=20, results=5)
    metrics.executed("ByKind", "done", 0.25)
    metrics.record_to_result("ByKind", 0.5)
    metrics.http("/status", "GET", 200, 0.1)
    found = exposition.read(metrics.render().decode(), exposition.CLUSTER)
    assert found == {
        "results_total ByKind": 5.0,
        "matched_total ByKind": 7.0,
        "considered_total ByKind": 20.0,
        "execution_seconds_sum ByKind": 0.25,
        "execution_seconds_count ByKind": 1.0,
        "record_to_result_seconds_sum ByKind": 0.5,
        "record_to_result_seconds_count ByKind": 1.0,
    }
