"""``/brokers``: they register, report and ask what to do; others see, drain and remove them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.coordinator import events
from tocsin.coordinator.api.context import Shared, check_broker_of, check_reads, check_rules
from tocsin.coordinator.brokers import Broker
from tocsin.coordinator.names import check_broker, check_registration, check_report
from tocsin.coordinator.world import World
from tocsin.protocol.coordination import Instructions, Load, Registered, Registration, Report, Reported
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["brokers"])
MAX_NUMBER = 2**63 - 1


class BrokerView(msgspec.Struct, frozen=True):
    """``users`` are placed there; ``online`` of them are connected, as it last reported.

    ``leaves_in_s`` is set where it drains and said when it will end, empty or not.
    """

    name: str
    url: str
    state: str
    incarnation: str
    location: tuple[float, float] | None
    capacity: float | None
    users: int
    online: int
    load: Load
    reports: int
    leaves_in_s: float | None = None


class Brokers(msgspec.Struct, frozen=True):
    brokers: list[BrokerView]


MESSAGES = (Registration, Registered, Report, Reported, Instructions, BrokerView, Brokers)


@router.put("/brokers/{name}", **operation(takes=Registration, gives=Registered, summary="Register a broker"))
async def register_broker(name: str, request: Request, api: Shared, who: Who) -> Response:
    """Before anything else, and again whenever a report was not known."""
    check_broker_of(who, check_broker(name))
    told = await read_json(request, Registration, api.limits)
    check_registration(told)
    return reply(await api.service.register(name, told))


@router.post("/brokers/{name}/report", **operation(takes=Report, gives=Reported, summary="Report a broker's state"))
async def report_broker(name: str, request: Request, api: Shared, who: Who) -> Response:
    check_broker_of(who, check_broker(name))
    report = await read_json(request, Report, api.limits)
    check_report(report)
    return reply(await api.service.report(name, report))


@router.get("/brokers/{name}/instructions", **operation(gives=Instructions, summary="Wait for what to do"))
async def broker_instructions(
    name: str,
    api: Shared,
    who: Who,
    incarnation: Annotated[str, Query(max_length=255)],
    after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
    wait_s: Annotated[float, Query(ge=0, le=3600)] = 0.0,
) -> Response:
    """Instructions with numbers above ``after``, which were carried out; 404 where the broker has to register."""
    check_broker_of(who, check_broker(name))
    found = await api.service.instructions(name, incarnation, after, min(wait_s, api.limits.wait_s))
    return reply(Instructions(found))


@router.get("/brokers", **operation(gives=Brokers, summary="List brokers"))
async def list_brokers(api: Shared, who: Who) -> Response:
    check_reads(who)
    world = await api.world()
    return reply(Brokers([_view(world, broker) for broker in sorted(world.brokers, key=lambda b: b.name)]))


@router.get("/brokers/{name}", **operation(gives=BrokerView, summary="Show a broker"))
async def show_broker(name: str, api: Shared, who: Who) -> Response:
    check_reads(who)
    world = await api.world()
    return reply(_view(world, api.service.state.living.find(check_broker(name))))


@router.post("/brokers/{name}/drain", **operation(gives=BrokerView, summary="Move everyone away from a broker"))
async def drain_broker(name: str, api: Shared, who: Who) -> Response:
    check_rules(who)
    await api.service.handle(events.DrainAsked(check_broker(name)))
    return reply(_view(api.service.state.world, api.service.state.living.find(name)))


@router.delete("/brokers/{name}", **operation(gives=BrokerView, summary="Declare a broker gone"))
async def remove_broker(name: str, api: Shared, who: Who) -> Response:
    """Its users are placed elsewhere at once. If it lives after all, it registers again."""
    check_rules(who)
    await api.service.handle(events.BrokerRemoved(check_broker(name)))
    return reply(_view(api.service.state.world, api.service.state.living.find(name)))


def _view(world: World, broker: Broker) -> BrokerView:
    presence = world.presence[broker.name]
    leaves_in_s = None if presence.leaves_s is None else max(0.0, presence.leaves_s - world.clock.now_s)
    return BrokerView(
        broker.name, broker.url, broker.state, broker.incarnation, broker.location, broker.capacity,
        len(world.users.residents[broker.name]), len(presence.holdings), presence.load, presence.reports,
        leaves_in_s,
    )  # fmt: skip
