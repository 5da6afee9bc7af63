"""Who may ask the coordinator what."""

from __future__ import annotations

import pytest

from support.asgi import AppClient
from support.openapi import operation_names

OPEN = {"/healthz", "/readyz", "/version"}
BROKER = {"incarnation": "1", "url": "http://a.invalid:1"}
WANTED = {"id": "1", "target": {"kind": "topic", "name": "news"}}
REPORT = {"incarnation": "1", "load": {}}


def test_without_a_token_nothing_is_answered(anyone: AppClient, app):
    closed = [name for name in operation_names(app.openapi()) if name.split()[1] not in OPEN]
    assert len(closed) > 18
    for name in closed:
        method, path = name.split()
        assert anyone.request(method, path.replace("{", "").replace("}", "")).status_code == 401, name


@pytest.mark.parametrize(
    ("who", "method", "path", "body", "status"),
    [
        pytest.param(("a", "broker:a"), "PUT", "/brokers/a", BROKER, 200, id="a broker registers itself"),
        pytest.param(("b", "broker:b"), "PUT", "/brokers/a", BROKER, 403, id="not another"),
        pytest.param(("b", "broker:b"), "POST", "/brokers/a/report", REPORT, 403, id="nor reports for it"),
        pytest.param(
            ("b", "broker:b"), "GET", "/brokers/a/instructions?incarnation=1", None, 403, id="nor hears what it hears"
        ),
        pytest.param(("ann", "read"), "PUT", "/brokers/a", BROKER, 403, id="a reader registers nobody"),
        pytest.param(("ann",), "POST", "/users/ann/placement", {}, 200, id="a user asks for itself"),
        pytest.param(("bob",), "POST", "/users/ann/placement", {}, 403, id="not for others"),
        pytest.param(("b", "broker:b"), "POST", "/users/ann/placement", {}, 200, id="a broker asks for anyone"),
        pytest.param(("ann",), "PUT", "/users/ann/subscriptions/1", WANTED, 403, id="a user keeps nothing itself"),
        pytest.param(("b", "broker:b"), "PUT", "/users/ann/subscriptions/1", WANTED, 204, id="a broker does"),
        pytest.param(("ann",), "GET", "/users/ann", None, 200, id="a user sees itself"),
        pytest.param(("bob",), "GET", "/users/ann", None, 403, id="not others"),
        pytest.param(("bob", "read"), "GET", "/users/ann", None, 200, id="a reader does"),
        pytest.param(("bob", "read"), "GET", "/loads", None, 200, id="and sees loads"),
        pytest.param(("bob",), "GET", "/assignments", None, 403, id="nobody else does"),
        pytest.param(("bob", "read"), "POST", "/plans", {"moves": []}, 403, id="a reader plans nothing"),
        pytest.param(("b", "broker:b"), "POST", "/plans", {"moves": []}, 403, id="nor does a broker"),
        pytest.param(("ops", "coordinator"), "POST", "/plans", {"moves": []}, 201, id="an operator does"),
        pytest.param(("bob", "read"), "POST", "/brokers/a/drain", None, 403, id="a reader drains nothing"),
        pytest.param(("bob", "read"), "DELETE", "/brokers/a", None, 403, id="removes no broker"),
        pytest.param(("ann",), "DELETE", "/users/ann", None, 403, id="and no user removes itself here"),
        pytest.param(("bob", "read"), "PUT", "/policies", {"placement": {"name": "random"}}, 403, id="nor policies"),
    ],
)
def test_capabilities(client: AppClient, anyone: AppClient, token, who, method, path, body, status):
    assert client.request("PUT", "/brokers/a", json=BROKER).is_success
    assert client.post("/users/ann/placement", json={}).is_success
    options = {} if body is None else {"json": body}
    assert anyone.request(method, path, headers=token(*who), **options).status_code == status
