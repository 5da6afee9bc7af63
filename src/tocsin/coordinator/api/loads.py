"""``/loads``: what balancing goes by, the paper's (X, Y, R), of online subscribers only; and ``/policies``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.api.context import Api, Shared, check_reads, check_rules
from tocsin.policies.registry import PLACEMENT, placement_policy
from tocsin.protocol.coordination import Load
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["loads"])


class BrokerLoad(msgspec.Struct, frozen=True):
    name: str
    state: str
    capacity: float | None
    load: Load


class OnlineUser(msgspec.Struct, frozen=True):
    """X: the broker of a user; Y: the streams that it holds there."""

    user: str
    broker: str
    streams: list[str]


class Loads(msgspec.Struct, frozen=True):
    """``rates`` is R: model bytes a second of each stream, the highest that a broker measured."""

    brokers: list[BrokerLoad]
    users: list[OnlineUser]
    rates: dict[str, float]


class PolicyChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy by name, its parameters as texts."""

    name: str
    options: dict[str, str] = {}


class Policies(msgspec.Struct, frozen=True):
    placement: PolicyChoice
    known: list[str]


class ChosenPolicies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    placement: PolicyChoice


MESSAGES = (Loads, Policies, ChosenPolicies)


@router.get("/loads", **operation(gives=Loads, summary="Show loads, holdings and rates"))
async def show_loads(api: Shared, who: Who) -> Response:
    check_reads(who)
    world = await api.world()
    brokers, users, rates = [], [], dict[str, float]()
    for broker in sorted(world.brokers, key=lambda b: b.name):
        if broker.is_ended:
            continue
        presence = world.presence[broker.name]
        brokers.append(BrokerLoad(broker.name, broker.state, broker.capacity, presence.load))
        users += [OnlineUser(user, broker.name, list(held)) for user, held in sorted(presence.holdings.items())]
        for stream, rate in presence.rates.items():
            rates[stream] = max(rate, rates.get(stream, 0.0))
    return reply(Loads(brokers, users, rates))


@router.get("/policies", **operation(gives=Policies, summary="Show the policies in force"))
async def show_policies(api: Shared, who: Who) -> Response:
    check_reads(who)
    await api.world()
    return reply(_policies(api))


@router.put("/policies", **operation(takes=ChosenPolicies, gives=Policies, summary="Choose policies"))
async def choose_policies(request: Request, api: Shared, who: Who) -> Response:
    """Holds until the configuration names another policy than it does now."""
    check_rules(who)
    chosen = (await read_json(request, ChosenPolicies, api.limits)).placement
    placement_policy(chosen.name, chosen.options)
    await api.service.handle(events.PolicyChosen(chosen.name, chosen.options, api.configured))
    return reply(_policies(api))


def _policies(api: Api) -> Policies:
    policy = api.service.state.world.policy
    name = next(name for name, kind in PLACEMENT.items() if isinstance(policy, kind))
    options: Mapping[str, object] = asdict(policy)  # type: ignore[call-overload]
    return Policies(PolicyChoice(name, {key: str(value) for key, value in options.items()}), list(PLACEMENT))
