"""Counters are read from what the cluster's own metrics render."""

from tocsin.datacluster.metrics import Metrics
from tocsin.demo.counters import Counted, parse_counters


def test_counters_of_each_channel():
    metrics = Metrics()
    for outcome in ("done", "done", "failed"):
        metrics.executed("ByKind", outcome, 0.1)
    metrics.matched("ByKind", matched=12, considered=40, results=5)
    metrics.executed("NearMe", "done", 0.1)
    assert parse_counters(metrics.render().decode()) == {
        "ByKind": Counted(executions=2, failed=1, rows=5, matched=12),
        "NearMe": Counted(executions=1),
    }
