"""The application over a coordinator without a cluster, and clients with tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import pytest
from fastapi import FastAPI

from support.asgi import AppClient, client_of
from support.coordinators import MemoryStore, NoCluster
from tocsin.coordinator.api import create_app
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator
from tocsin.coordinator.state import State
from tocsin.policies.registry import placement_policy
from tocsin.tokens import mint, verify

SECRET = b"a secret of at least thirty-two bytes"
Token = Callable[..., dict[str, str]]


@pytest.fixture
def service() -> Coordinator:
    state = State(Rules(max_subscriptions=3), placement_policy("round_robin"), Random(0))
    return Coordinator(state, MemoryStore(), NoCluster(), secret=SECRET)


@pytest.fixture
def app(service: Coordinator) -> FastAPI:
    return create_app(service, verify=partial(verify, secret=SECRET), configured="round_robin")


@pytest.fixture
def token() -> Token:
    """Headers with a token of a subject that has the given capabilities."""

    def make(subject: str, *capabilities: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {mint(SECRET, subject, capabilities, 60)}"}

    return make


@pytest.fixture
def client(app: FastAPI, token: Token) -> Iterator[AppClient]:
    with client_of(app, token("root", "admin")) as client:
        yield client


@pytest.fixture
def anyone(app: FastAPI) -> Iterator[AppClient]:
    with client_of(app) as client:
        yield client
