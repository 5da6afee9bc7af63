"""What other brokers ask of this one over HTTP, with a broker's token."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from tocsin.broker.app import Who, body_of
from tocsin.broker.ports import is_peer
from tocsin.broker.upstream.handover import Taker
from tocsin.broker.upstream.owners import TopicUpstream
from tocsin.errors import BadArgument, Refused, Unavailable
from tocsin.protocol.targets import check_topic
from tocsin.tokens import Principal

MAX_TAKER_BYTES = 4096


def peer_routes(topics: TopicUpstream) -> APIRouter:
    router = APIRouter(tags=["peers"])

    @router.post("/topics/{topic:path}/handover")
    async def hand_over(topic: str, request: Request, who: Who) -> Response:
        """Give a topic's log to the broker that asks; from then on it stamps."""
        _peers_only(who)
        try:
            taker = msgspec.json.decode(await body_of(request, MAX_TAKER_BYTES), type=Taker)
        except msgspec.DecodeError as problem:
            raise BadArgument("body", "the name and the address of a broker", str(problem)) from None
        return _json(topics.hand_over(check_topic(topic), taker))

    @router.get("/topics/{topic:path}/history")
    async def history(topic: str, after: str, through: str, who: Who) -> Response:
        """A page of a topic's past; 503 where another broker has it."""
        _peers_only(who)
        page = await topics.history(check_topic(topic), after, through)
        if page is None:
            raise Unavailable(f"the topic {topic!r} is stamped elsewhere")
        return _json(page)

    return router


def _peers_only(who: Principal) -> None:
    if not is_peer(who):
        raise Refused("this is for brokers")


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
