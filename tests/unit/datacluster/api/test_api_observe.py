"""Requests are counted by route template, failures and strangers included."""

from __future__ import annotations

from support.asgi import AppClient
from support.memory_cluster import MemoryCluster
from tocsin.datacluster.metrics import Metrics


def count(metrics: Metrics, route: str, method: str, status: int) -> float | None:
    labels = {"route": route, "method": method, "status": str(status)}
    return metrics.registry.get_sample_value("tocsin_http_requests_total", labels)


def test_a_request_is_counted_by_its_template(client: AppClient, metrics: Metrics):
    client.get("/datasets/Reports")
    client.get("/datasets/Nothing")
    assert count(metrics, "/datasets/{name}", "GET", 200) == 1
    assert count(metrics, "/datasets/{name}", "GET", 404) == 1
    assert metrics.registry.get_sample_value("tocsin_http_seconds_count", {"route": "/datasets/{name}"}) == 2


def test_unknown_addresses_share_a_label(client: AppClient, metrics: Metrics):
    for path in ("/a", "/b"):
        client.get(path)
    assert count(metrics, "(unmatched)", "GET", 404) == 2


def test_failures_are_counted(client: AppClient, cluster: MemoryCluster, metrics: Metrics):
    cluster.feeds = None  # type: ignore[method-assign, assignment]
    assert client.get("/feeds").status_code == 500
    assert count(metrics, "/feeds", "GET", 500) == 1


def test_the_scrape_shows_them(client: AppClient):
    client.get("/feeds")
    assert 'tocsin_http_requests_total{method="GET",route="/feeds",status="200"} 1.0' in client.get("/metrics").text
