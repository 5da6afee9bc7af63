"""The coordinator's OpenAPI document tells the truth."""

from __future__ import annotations

import json
from functools import partial
from random import Random

import pytest

from support.coordinators import MemoryStore, NoCluster
from support.openapi import check_operation, operation_names
from tocsin.coordinator import events
from tocsin.coordinator.api import create_app
from tocsin.coordinator.api.context import ApiLimits
from tocsin.coordinator.deciding import Decider
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator
from tocsin.coordinator.state import State
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import Load, Registration, Report
from tocsin.tokens import mint, verify

SECRET = b"a secret of at least thirty-two bytes"
AT_A, OF_ANN = {"path_parameters": {"name": "a"}}, {"path_parameters": {"user": "ann"}}
WANTED = {"id": "1", "target": {"kind": "topic", "name": "news"}}
KNOWN = {
    "/brokers/{name}": AT_A | {"body": {"incarnation": "1", "url": "http://a.invalid:1"}},
    "/brokers/{name}/report": AT_A | {"body": {"incarnation": "1", "load": {}}},
    "/brokers/{name}/instructions": AT_A | {"query": {"incarnation": "1"}},
    "/brokers/{name}/drain": AT_A,
    "/users/{user}": OF_ANN,
    "/users/{user}/placement": OF_ANN | {"body": {}},
    "/users/{user}/subscriptions/{id}": {"path_parameters": {"user": "ann", "id": "1"}, "body": WANTED},
    "/plans": {"body": {"moves": [{"user": "ann", "to": "b"}]}},
    "/plans/{id}": {"path_parameters": {"id": "p000000001"}},
    "/policies": {"body": {"placement": {"name": "random"}, "balancing": {"migrate": {"name": "ldm"}}}},
    "/rebalance": {"body": {"policy": "all", "dry_run": True}},
}


def service() -> Coordinator:
    """With two brokers that have reported, a user and a plan, so that answers have something in them."""
    state = State(Rules(), placement_policy("round_robin"), Random(0))
    made = Coordinator(state, MemoryStore(), NoCluster(), secret=SECRET)
    for name in ("a", "b"):
        state.handle(events.BrokerRegistered(name, Registration("1", f"http://{name}.invalid:1")), 0.0)
        state.handle(events.BrokerReported(name, Report("1", Load(), is_full=True)), 0.0)
    state.handle(events.PlacementAsked("ann"), 0.0)
    state.handle(events.PlanProposed([events.WantedMove("ann", "b", "")], "a test"), 0.0)
    assert Decider, "kernels are loaded here, not within a request's time"
    return made


APP = create_app(service(), verify=partial(verify, secret=SECRET), limits=ApiLimits(wait_s=0.001))


@pytest.mark.parametrize("name", operation_names(APP.openapi()))
def test_answers_are_those_that_the_document_describes(name: str):
    token = mint(SECRET, "root", ["admin"], 600)
    sent = check_operation(APP, name, headers={"Authorization": f"Bearer {token}"}, examples=5, known=KNOWN)
    assert sent > 0


def test_every_reference_resolves_and_every_operation_has_its_own_name():
    document = APP.openapi()
    references = {part.split('"')[0] for part in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert references <= set(document["components"]["schemas"])
    ids = [one["operationId"] for item in document["paths"].values() for one in item.values()]
    assert len(ids) == len(set(ids))
