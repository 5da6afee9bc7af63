"""The application over a cluster of dictionaries, and a client that holds an administrator's token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from fastapi import FastAPI

from support.asgi import AppClient, client_of
from support.memory_cluster import MemoryCluster
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.datacluster.metrics import Metrics
from tocsin.tokens import mint, verify

SECRET = b"a secret of at least thirty-two bytes"
LIMITS = ApiLimits(
    body_bytes=4096, ingest_bytes=1000, ingest_requests=2, ingest_inflight_bytes=1500, items=5, waiting_pulls=1
)

Token = Callable[..., dict[str, str]]


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def app(cluster: MemoryCluster, metrics: Metrics) -> FastAPI:
    return create_app(cluster, verify=partial(verify, secret=SECRET), limits=LIMITS, metrics=metrics)


@pytest.fixture
def token() -> Token:
    """Headers with a token that has the given capabilities."""

    def make(*capabilities: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {mint(SECRET, 'ann', capabilities, 60)}"}

    return make


@pytest.fixture
def client(app: FastAPI, token: Token) -> Iterator[AppClient]:
    with client_of(app, token("admin")) as client:
        yield client


@pytest.fixture
def anyone(app: FastAPI) -> Iterator[AppClient]:
    """A client without a token."""
    with client_of(app) as client:
        yield client
