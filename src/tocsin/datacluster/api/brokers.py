"""``/brokers``: what brokers pull and acknowledge."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from tocsin.datacluster.api.context import Api, Shared
from tocsin.datacluster.api.pages import Pages, Positions, page_of, parse_positions
from tocsin.datacluster.api.pulling import pull_waiting
from tocsin.datacluster.service import BrokerView, ChannelPage
from tocsin.model.position import START, Position
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import check_items, read_json
from tocsin.web.describe import encode, operation, reply, reply_bytes

router = APIRouter(tags=["brokers"])


class Broker(msgspec.Struct, frozen=True):
    name: str
    url: str
    subscriptions: int
    waiting_notices: int
    problem: str | None


class Brokers(msgspec.Struct, frozen=True):
    brokers: list[Broker]


class Pull(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the broker stands in each channel (null: at the beginning), and how much it takes at once."""

    cursors: dict[str, str | None]
    max_rows: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    wait_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0


MESSAGES = (Broker, Brokers, Pull)


@router.get("/brokers", **operation(gives=Brokers, summary="List brokers"))
async def list_brokers(api: Shared, who: Who) -> Response:
    views = await api.call(api.service.brokers, who)
    return reply(Brokers([_broker(view) for view in views]))


@router.post("/brokers/{name}/pull", **operation(takes=Pull, gives=Pages, summary="Pull results"))
async def pull(name: str, request: Request, api: Shared, who: Who) -> Response:
    """Results for all that is attached to the broker, waiting up to ``wait_s`` for the first one."""
    asked = await read_json(request, Pull, api.limits)
    check_items("cursors in one request", len(asked.cursors), api.limits.items)
    ask = partial(_ask, api, name, asked, _cursors(asked.cursors), who)
    wait_s = min(asked.wait_s, api.limits.wait_s)
    pages = await (pull_waiting(api, request, wait_s, ask) if wait_s > 0 else api.call(ask, 0.0))
    return reply_bytes(await api.call(_encode, pages))


@router.post("/brokers/{name}/ack", **operation(takes=Positions, status=204, summary="Acknowledge results"))
async def acknowledge(name: str, request: Request, api: Shared, who: Who) -> Response:
    """The broker has everything up to these positions."""
    asked = await read_json(request, Positions, api.limits)
    check_items("positions in one request", len(asked.positions), api.limits.items)
    await api.call(api.service.acknowledge, name, parse_positions(asked.positions), who)
    return Response(status_code=204)


@router.get("/brokers/{name}/ack", **operation(gives=Positions, summary="Show what was acknowledged"))
async def acknowledged(name: str, api: Shared, who: Who) -> Response:
    positions = await api.call(api.service.acknowledged, name, who)
    return reply(Positions({channel: str(position) for channel, position in positions.items()}))


def _ask(
    api: Api, name: str, asked: Pull, cursors: dict[str, Position], who: Principal, wait_s: float
) -> list[ChannelPage]:
    limits = api.limits
    rows = min(asked.max_rows or limits.page_rows, limits.page_rows)
    size = min(asked.max_bytes or limits.page_bytes, limits.page_bytes)
    return api.service.pull(name, cursors, who, max_rows=rows, max_bytes=size, wait_s=wait_s)


def _encode(pages: list[ChannelPage]) -> bytes:
    return encode(Pages([page_of(page) for page in pages]))


def _cursors(texts: dict[str, str | None]) -> dict[str, Position]:
    return {channel: START if text is None else Position.parse(text) for channel, text in texts.items()}


def _broker(view: BrokerView) -> Broker:
    return Broker(view.name, view.url, view.subscriptions, view.waiting_notices, view.problem)
