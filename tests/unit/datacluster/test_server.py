"""The settings of the HTTP interface reach it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.memory_cluster import MemoryCluster
from tocsin.config import load
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.server import make_server
from tocsin.errors import ConfigError
from tocsin.tokens import ensure_secret
from tocsin.web.server import ServerOptions


def test_open_metrics_and_allowed_origins_are_settings(tmp_path: Path) -> None:
    settings = {"http.open_metrics": True, "http.allowed_origins": "https://a.example https://b.example:8443"}
    config = load(overrides={"cluster.data_dir": str(tmp_path), "cluster.port": 0, **settings})
    ensure_secret(config.secret_path)
    cluster = MemoryCluster()
    cluster.metrics = Metrics()  # type: ignore[attr-defined]
    server = make_server(cluster, config)  # type: ignore[arg-type]
    server.start()
    answers = [
        httpx.get(f"{server.url}/metrics", headers={"Origin": origin})
        for origin in ("https://b.example:8443", "https://c.example")
    ]
    server.stop()
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.headers.get("access-control-allow-origin") for answer in answers] == [
        "https://b.example:8443",
        None,
    ]


def test_what_holds_for_every_server_is_read_from_the_settings() -> None:
    settings = {"http.drain_timeout": "3s", "http.max_connections": 7, "http.body_timeout": "20s"}
    options = ServerOptions.of("::1", 0, load(overrides=settings))
    assert (options.host, options.port, options.tls) == ("::1", 0, None)
    assert (options.drain_timeout_s, options.max_connections, options.limits.body_s) == (3.0, 7, 25.0)


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(ConfigError, match=r"http\.tls_key: expected both or neither"):
        load(overrides={"http.tls_certificate": "own.pem"})
