"""The OpenAPI document tells the truth."""

from __future__ import annotations

import json
from functools import partial

import pytest

from support.asgi import AppClient
from support.memory_cluster import BROKER, CHANNEL, DATASET, MemoryCluster
from support.openapi import check_operation, operation_names
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.datacluster.service import Wanted
from tocsin.model.position import START
from tocsin.tokens import LOCAL_ADMIN, mint, verify

SECRET = b"a secret of at least thirty-two bytes"
IN_DATASET, IN_CHANNEL, AT_BROKER = ({"path_parameters": {"name": name}} for name in (DATASET, CHANNEL, BROKER))
WANTED = [{"arguments": {"kind": "fire"}, "id": "mine"}]
KNOWN = {
    "/statements": {"body": {"text": "SHOW DATASETS"}},
    "/datasets/{name}": IN_DATASET,
    "/datasets/{name}/records": IN_DATASET,
    "/channels/{name}": IN_CHANNEL,
    "/channels/{name}/explain": IN_CHANNEL,
    "/channels/{name}/results": IN_CHANNEL | {"query": {"backend": 0, "after": str(START)}},
    "/results": {"body": {"spans": [{"channel": CHANNEL, "backend": 0, "after": str(START), "through": str(START)}]}},
    "/subscriptions": {"body": {"channel": CHANNEL, "broker": BROKER, "subscriptions": WANTED}},
    "/subscriptions/change": {"body": {"ids": ["mine"], "broker": BROKER}},
    "/brokers/{name}/pull": AT_BROKER | {"body": {"cursors": {CHANNEL: str(START)}}},
    "/brokers/{name}/ack": AT_BROKER | {"body": {"positions": {CHANNEL: str(START)}}},
}


def cluster() -> MemoryCluster:
    """With a subscription and a result, so that answers have something in them."""
    made = MemoryCluster()
    made.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "mine")], LOCAL_ADMIN)
    made.publish("fire", b'{"text": "smoke"}')
    return made


APP = create_app(cluster(), verify=partial(verify, secret=SECRET), limits=ApiLimits(wait_s=0.001))


@pytest.mark.parametrize("name", operation_names(APP.openapi()))
def test_answers_are_those_that_the_document_describes(name: str):
    token = mint(SECRET, "ann", ["admin"], 600)
    sent = check_operation(APP, name, headers={"Authorization": f"Bearer {token}"}, examples=10, known=KNOWN)
    assert sent > 0


def test_the_document_needs_no_token_and_no_other_host(anyone: AppClient):
    document = anyone.get("/openapi.json")
    assert document.status_code == 200
    assert "http://" not in document.text.replace("http://127.0.0.1", "")
    assert "https://" not in document.text


def test_every_reference_resolves_and_every_operation_has_its_own_name():
    document = APP.openapi()
    schemas = document["components"]["schemas"]
    references = {part.split('"')[0] for part in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert references <= set(schemas)
    ids = [one["operationId"] for item in document["paths"].values() for one in item.values()]
    assert len(ids) == len(set(ids))


def test_every_guarded_operation_says_so():
    unguarded = {
        path for path, item in APP.openapi()["paths"].items() for one in item.values() if not one.get("security")
    }
    assert unguarded == {"/healthz", "/readyz", "/version"}
