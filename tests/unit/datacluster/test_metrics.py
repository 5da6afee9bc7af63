"""Metrics say what happened, under labels that cannot grow without bound."""

from __future__ import annotations

from tocsin.datacluster.metrics import OTHER, Metrics


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_what_happens_is_counted_under_its_name():
    metrics = Metrics()
    metrics.records("Reports", 3, 1)
    metrics.ingested(0.002)
    metrics.executed("Near", "done", 0.1)
    metrics.matched("Near", matched=5, considered=40, results=2)
    metrics.record_to_result("Near", 0.05)
    metrics.channel_lag("Near", 1.5)
    metrics.subscriptions("Near", 100, 10)
    metrics.outbox(4)
    metrics.outbox_attempt("failed")
    assert value(metrics, "tocsin_records_total", dataset="Reports") == 3
    assert value(metrics, "tocsin_rejected_records_total", dataset="Reports") == 1
    assert value(metrics, "tocsin_ingest_seconds_count") == 1
    assert value(metrics, "tocsin_executions_total", channel="Near", outcome="done") == 1
    assert value(metrics, "tocsin_execution_seconds_sum", channel="Near") == 0.1
    assert value(metrics, "tocsin_matched_total", channel="Near") == 5
    assert value(metrics, "tocsin_considered_total", channel="Near") == 40
    assert value(metrics, "tocsin_results_total", channel="Near") == 2
    assert value(metrics, "tocsin_record_to_result_seconds_count", channel="Near") == 1
    assert value(metrics, "tocsin_channel_lag_seconds", channel="Near") == 1.5
    assert value(metrics, "tocsin_subscriptions", channel="Near") == 100
    assert value(metrics, "tocsin_backend_subscriptions", channel="Near") == 10
    assert value(metrics, "tocsin_outbox_waiting") == 4
    assert value(metrics, "tocsin_outbox_attempts_total", outcome="failed") == 1


def test_names_beyond_the_bound_are_counted_together():
    metrics = Metrics(max_names=2)
    for name in ("a", "b", "c", "d", "a"):
        metrics.records(name, 1, 0)
    assert value(metrics, "tocsin_records_total", dataset="a") == 2
    assert value(metrics, "tocsin_records_total", dataset=OTHER) == 2
    assert value(metrics, "tocsin_records_total", dataset="c") is None


def test_a_dropped_channel_leaves_no_series_and_frees_its_place():
    metrics = Metrics(max_names=1)
    metrics.executed("Near", "done", 0.1)
    metrics.executed("Near", "failed", 0.1)
    metrics.subscriptions("Near", 1, 1)
    metrics.forget_channel("Near")
    metrics.executed("Far", "done", 0.1)
    text = metrics.render().decode()
    assert 'channel="Near"' not in text
    assert 'channel="Far"' in text


def test_a_dropped_dataset_leaves_no_series():
    metrics = Metrics()
    metrics.records("Reports", 1, 0)
    metrics.forget_dataset("Reports")
    metrics.forget_dataset("Never")
    assert "Reports" not in metrics.render().decode()


def test_odd_methods_share_a_label():
    metrics = Metrics()
    metrics.http("/datasets", "BREW", 405, 0.001)
    assert value(metrics, "tocsin_http_requests_total", route="/datasets", method=OTHER, status="405") == 1


def test_gauges_are_refreshed_before_a_scrape():
    metrics = Metrics()
    metrics.before_scrape(lambda: metrics.outbox(7))
    assert b"tocsin_outbox_waiting 7.0" in metrics.render()
