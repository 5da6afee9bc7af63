"""No route answers a stranger, save those that are meant to."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from support.asgi import AppClient, client_of
from support.memory_cluster import MemoryCluster
from tocsin.datacluster.api import create_app
from tocsin.errors import Unauthenticated
from tocsin.tokens import Principal

OPEN = {"/healthz", "/readyz", "/version", "/openapi.json"}


def nobody(_: str) -> Principal:
    raise Unauthenticated("the token does not verify")


def operations(routes: list, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path, through routers that are included in others."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from operations(inner.routes, prefix + route.include_context.prefix)
        else:
            yield from ((method, prefix + route.path) for method in sorted(route.methods - {"HEAD"}))


ALL = sorted(set(operations(create_app(MemoryCluster(), verify=nobody).routes)))
CLOSED = [one for one in ALL if one[1] not in OPEN]


def test_the_routes_found_are_those_that_the_document_describes(app: FastAPI):
    described = {(method.upper(), path) for path, one in app.openapi()["paths"].items() for method in one}
    assert set(ALL) - {("GET", "/openapi.json")} == described
    assert len(CLOSED) > 15


@pytest.mark.parametrize(("method", "path"), CLOSED, ids=lambda part: part)
def test_without_a_token_the_answer_is_401(anyone: AppClient, method: str, path: str):
    answer = anyone.request(method, path.replace("{", "").replace("}", ""))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="tocsin"'
    assert answer.json()["type"] == "urn:tocsin:unauthenticated"


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("Bearer not.a.token", id="not a token"),
        pytest.param("Basic YWJjOmRlZg==", id="another scheme"),
        pytest.param("token-without-a-scheme", id="no scheme"),
        pytest.param("Bearer " + "x" * 10_000, id="far too long"),
    ],
)
def test_a_bad_token_is_refused_and_never_logged(anyone: AppClient, header: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    answer = anyone.get("/datasets", headers={"Authorization": header})
    assert answer.status_code == 401
    assert header not in caplog.text + answer.text


def test_a_token_is_checked_before_the_body_is_read(anyone: AppClient):
    assert anyone.post("/statements", content=b"x" * 100_000).status_code == 401


def test_what_a_token_may_do_is_for_the_service_to_say(anyone: AppClient, token):
    answer = anyone.post("/datasets/Reports/records", content=b"{}", headers=token("read"))
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:tocsin:forbidden")
    assert anyone.post("/datasets/Reports/records", content=b"{}", headers=token("ingest:Reports")).is_success


def test_metrics_need_a_token_that_may_read(anyone: AppClient, token):
    assert anyone.get("/metrics").status_code == 401
    assert anyone.get("/metrics", headers=token("ingest:Reports")).status_code == 403
    assert anyone.get("/metrics", headers=token("read")).headers["content-type"].startswith("text/plain")


def test_metrics_may_be_open(cluster: MemoryCluster):
    with client_of(create_app(cluster, verify=nobody, open_metrics=True)) as client:
        assert (client.get("/metrics").status_code, client.get("/datasets").status_code) == (200, 401)


@pytest.fixture
def insecure(cluster: MemoryCluster) -> Iterator[AppClient]:
    app = create_app(cluster, verify=nobody, insecure=True, allowed_origins=["https://city.example"])
    with client_of(app) as client:
        yield client


def test_insecure_makes_everyone_the_local_administrator(insecure: AppClient):
    wanted = {"channel": "ByKind", "broker": "north", "subscriptions": [{"arguments": ["fire"]}]}
    assert insecure.post("/subscriptions", json=wanted).is_success
    assert insecure.get("/subscriptions").json()["subscriptions"][0]["owner"] == "local"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Host": "localhost:8420"}, 200, id="localhost may ask"),
        pytest.param({"Host": "[::1]:8420"}, 200, id="so may the sixth version"),
        pytest.param({"Host": "evil.example:8420"}, 403, id="a foreign name for loopback may not"),
        pytest.param({"Host": "127.0.0.1.evil.example"}, 403, id="nor one that looks like a number"),
        pytest.param({"Host": "[::1"}, 403, id="nor one that is no name at all"),
        pytest.param({"Origin": "http://localhost:3000"}, 200, id="a page of this machine may ask"),
        pytest.param({"Origin": "https://city.example"}, 200, id="an allowed page may ask"),
        pytest.param({"Origin": "https://evil.example"}, 403, id="another page may not"),
        pytest.param({"Origin": "null"}, 403, id="nor one without an origin"),
    ],
)
def test_insecure_listens_to_this_machine_only(insecure: AppClient, headers: dict[str, str], status: int):
    answer = insecure.post("/datasets/Reports/records", content=b"{}", headers=headers)
    assert answer.status_code == status


def test_allowed_origins_get_their_preflight_answered(insecure: AppClient):
    asked = {"Origin": "https://city.example", "Access-Control-Request-Method": "POST"}
    answer = insecure.request("OPTIONS", "/statements", headers=asked)
    assert answer.headers["access-control-allow-origin"] == "https://city.example"
    refused = insecure.request("OPTIONS", "/statements", headers=asked | {"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in refused.headers


def test_who_may_not_write_is_refused_before_the_body_is_read(anyone: AppClient, token):
    answer = anyone.post("/datasets/Reports/records", content=b"x" * 10**6, headers=token("ingest:Others"))
    assert (answer.status_code, "ingest:Reports" in answer.json()["detail"]) == (403, True)
