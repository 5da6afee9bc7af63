"""What other brokers ask of this one over HTTP, with a broker's token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from tocsin.broker.app import Shared
from tocsin.broker.ports import is_peer
from tocsin.broker.upstream.handover import Handover, HistoryPage, Known, State, Taker
from tocsin.broker.upstream.owners import TopicUpstream
from tocsin.errors import BadArgument, Refused, Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.targets import check_topic
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import decode, read_bytes
from tocsin.web.describe import operation, reply

MAX_TAKER_BYTES = 4096
MESSAGES = (Taker, State, Handover, HistoryPage, Known, BrokerInfo)


def peer_routes(topics: TopicUpstream) -> APIRouter:
    router = APIRouter(tags=["peers"])

    @router.post("/topics/{topic:path}/handover", **operation(takes=Taker, gives=Handover, summary="Take a topic over"))
    async def hand_over(topic: str, request: Request, who: Who, api: Shared) -> Response:
        """Give a topic's log to the broker that asks; from then on it stamps."""
        _peers_only(who)
        body = await read_bytes(request, MAX_TAKER_BYTES, api.core.settings.login_timeout)
        return reply(topics.hand_over(check_topic(topic), decode(body, Taker)))

    @router.get("/topics/{topic:path}/history", **operation(gives=HistoryPage, summary="Read a topic's past"))
    async def history(topic: str, after: str, through: str, who: Who) -> Response:
        """A page of it; 503 where another broker has it."""
        _peers_only(who)
        page = await topics.history(check_topic(topic), after, through)
        if page is None:
            raise Unavailable(f"the topic {topic!r} is stamped elsewhere")
        return reply(page)

    @router.post("/brokers/{name}/leaving", **operation(takes=BrokerInfo, gives=Known, summary="Let a broker go"))
    async def leaving(name: str, request: Request, who: Who, api: Shared) -> Response:
        """From that broker itself: topics are shared out without it, and its logs fetched. Who counts then."""
        _peers_only(who)
        who.need("broker", name)
        body = await read_bytes(request, MAX_TAKER_BYTES, api.core.settings.login_timeout)
        leaver = decode(body, BrokerInfo)
        if leaver.name != name:
            raise BadArgument("name", name, leaver.name)
        return reply(topics.leaves(leaver))

    @router.get("/topology", **operation(gives=Known, summary="Show who lives"))
    async def topology(who: Who) -> Response:
        """The brokers among which topics are shared out, as this one was told."""
        _peers_only(who)
        return reply(topics.known)

    return router


def _peers_only(who: Principal) -> None:
    if not is_peer(who):
        raise Refused("this is for brokers")
