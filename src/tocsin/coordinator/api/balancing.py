"""``/policies``, ``/decisions`` and ``/rebalance``: who places and balances, what was decided and why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.api.context import Api, Shared, check_reads, check_rules
from tocsin.coordinator.choices import BalancingChoice, PolicyChoice, check
from tocsin.coordinator.decisions import Decision, Trials
from tocsin.errors import BadArgument
from tocsin.policies.registry import BALANCING, PLACEMENT, placement_policy
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["balancing"])
ALL = "all"


class Policies(msgspec.Struct, frozen=True):
    """What is in force, how often balancing looks whether there is something to do, and the names that there are."""

    placement: PolicyChoice
    balancing: BalancingChoice
    balance_every_s: float
    known: list[str]
    known_balancing: list[str]


class ChosenPolicies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is; ``balancing`` without ``migrate`` and ``shuffle`` is off."""

    placement: PolicyChoice | None = None
    balancing: BalancingChoice | None = None


class Decisions(msgspec.Struct, frozen=True):
    decisions: list[Decision]


class Rebalancing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``policy`` by name; ``all`` of them only in a dry run. Left out, it is the one that migrates, or all."""

    policy: str | None = None
    options: dict[str, str] = {}
    dry_run: bool = False


MESSAGES = (Policies, ChosenPolicies, Decisions, Rebalancing, Trials)


@router.get("/policies", **operation(gives=Policies, summary="Show the policies in force"))
async def show_policies(api: Shared, who: Who) -> Response:
    check_reads(who)
    await api.world()
    return reply(_policies(api))


@router.put("/policies", **operation(takes=ChosenPolicies, gives=Policies, summary="Choose policies"))
async def choose_policies(request: Request, api: Shared, who: Who) -> Response:
    """Holds until the configuration names others than it does now."""
    check_rules(who)
    asked = await read_json(request, ChosenPolicies, api.limits)
    if asked.placement is not None:
        placement_policy(asked.placement.name, asked.placement.options)
    if asked.balancing is not None:
        await asyncio.to_thread(check, asked.balancing)
        await api.service.handle(events.BalancingChosen(asked.balancing, api.service.balancer.configured))
    if asked.placement is not None:
        chosen = events.PolicyChosen(asked.placement.name, asked.placement.options, api.configured)
        await api.service.handle(chosen)
    return reply(_policies(api))


@router.get("/decisions", **operation(gives=Decisions, summary="List what balancing decided, newest first"))
async def list_decisions(api: Shared, who: Who, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> Response:
    check_reads(who)
    await api.world()
    return reply(Decisions(api.service.balancer.latest(limit)))


@router.post("/rebalance", **operation(takes=Rebalancing, gives=Trials, summary="Compare policies, or follow one"))
async def rebalance(request: Request, api: Shared, who: Who) -> Response:
    """What the policies would do now, or, where it is no dry run, that one of them is done, in place of what balancing
    has planned and not begun. A plan that would raise the highest level is not carried out."""
    check_rules(who)
    asked = await read_json(request, Rebalancing, api.limits)
    is_all = asked.policy == ALL or (asked.policy is None and asked.dry_run)
    if asked.options and (is_all or asked.policy is None):
        raise BadArgument("options", "one policy that they belong to", asked.policy)
    if is_all and not asked.dry_run:
        raise BadArgument("policy", f"one of {', '.join(BALANCING)}", ALL)
    policy = None if is_all or asked.policy is None else PolicyChoice(asked.policy, asked.options)
    if policy is not None:
        await asyncio.to_thread(check, BalancingChoice(shuffle=policy))
    if asked.dry_run:
        return reply(await api.service.balancer.compare([policy] if policy else [PolicyChoice(n) for n in BALANCING]))
    return reply(await api.service.balancer.rebalance(policy))


def _policies(api: Api) -> Policies:
    policy = api.service.state.world.policy
    name = next(name for name, kind in PLACEMENT.items() if isinstance(policy, kind))
    options: Mapping[str, object] = asdict(policy)  # type: ignore[call-overload]
    placement = PolicyChoice(name, {key: str(value) for key, value in options.items()})
    balancer = api.service.balancer
    return Policies(placement, balancer.choice.in_force, balancer.every_s, list(PLACEMENT), list(BALANCING))
