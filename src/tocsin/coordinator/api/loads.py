"""``/loads``: what balancing goes by, the paper's (X, Y, R), of online subscribers only."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from tocsin.coordinator.api.context import Shared, check_reads
from tocsin.protocol.coordination import Load
from tocsin.web.auth import Who
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


MESSAGES = (Loads,)


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
        following = sorted((user, held) for user, held in presence.holdings.items() if held)
        users += [OnlineUser(user, broker.name, list(held)) for user, held in following]
        for stream, rate in presence.rates.items():
            rates[stream] = max(rate, rates.get(stream, 0.0))
    return reply(Loads(brokers, users, rates))
