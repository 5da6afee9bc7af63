"""Bodies that are compressed, and keys that come twice."""

from __future__ import annotations

import gzip

import pytest

from support.asgi import AppClient
from support.memory_cluster import MemoryCluster
from tocsin.errors import KeyReused

RECORDS = "/datasets/Reports/records"
LINES = b'{"id": 1}\n{"id": 2}\n'
GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(gzip.compress(LINES), id="one member"),
        pytest.param(gzip.compress(LINES[:10]) + gzip.compress(LINES[10:]), id="two members"),
    ],
)
def test_a_compressed_batch_is_read(client: AppClient, cluster: MemoryCluster, body: bytes):
    answer = client.post(RECORDS, content=body, headers=GZIP)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 2)
    assert cluster.bodies == [(LINES, None)]


def test_the_limit_is_that_of_the_inflated_bytes(client: AppClient, cluster: MemoryCluster):
    bomb = gzip.compress(b" " * 10**6)
    assert len(bomb) < 1200
    answer = client.post(RECORDS, content=gzip.compress(b" " * 1001), headers=GZIP)
    assert (answer.status_code, answer.json()["limit"]) == (413, 1000)
    assert client.post(RECORDS, content=bomb, headers=GZIP).status_code == 413
    assert client.post(RECORDS, content=gzip.compress(b" " * 1000), headers=GZIP).status_code == 200
    assert cluster.bodies == [(b" " * 1000, None)]


@pytest.mark.parametrize("body", [LINES, gzip.compress(LINES)[:-9]], ids=["no gzip", "cut off"])
def test_what_does_not_inflate_is_refused(client: AppClient, cluster: MemoryCluster, body: bytes):
    answer = client.post(RECORDS, content=body, headers=GZIP)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:tocsin:malformed-body")
    assert cluster.bodies == []


def test_another_encoding_is_refused(client: AppClient, cluster: MemoryCluster):
    answer = client.post(RECORDS, content=LINES, headers={"Content-Encoding": "br"})
    assert answer.status_code == 415
    assert "expected identity or gzip" in answer.json()["detail"]
    assert cluster.bodies == []


def test_a_key_with_other_content_is_a_conflict(client: AppClient, cluster: MemoryCluster):
    def reused(*_: object) -> None:
        raise KeyReused("k")

    cluster.ingest = reused
    answer = client.post(RECORDS, content=LINES, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()["type"], answer.json()["key"]) == (409, "urn:tocsin:key-reused", "k")
