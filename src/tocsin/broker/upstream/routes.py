"""What other brokers ask of this one over HTTP, with a broker's token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from tocsin.broker.app import Api, Shared
from tocsin.broker.ports import is_peer
from tocsin.broker.upstream.handover import Batch, Handed, Handover, HistoryPage, Known, State
from tocsin.broker.upstream.owners import TopicUpstream
from tocsin.errors import BadArgument, Refused, Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.targets import check_topic
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import decode, read_bytes
from tocsin.web.describe import operation, reply

MAX_BATCH_BYTES = 4 << 20  # more than the names of upstream.handover_topics can be
MESSAGES = (Batch, State, Handover, Handed, HistoryPage, Known, BrokerInfo)


def peer_routes(topics: TopicUpstream) -> APIRouter:
    router = APIRouter(tags=["peers"])

    @router.post("/handover", **operation(takes=Batch, gives=Handed, summary="Take topics over"))
    async def hand_over(request: Request, who: Who, api: Shared) -> Response:
        """Give topics' logs to the broker that asks, as many as fit; from then on it stamps."""
        _peers_only(who)
        return reply(topics.hand_over(await _batch(request, api)))

    @router.get("/topics/{topic:path}/history", **operation(gives=HistoryPage, summary="Read a topic's past"))
    async def history(topic: str, after: str, through: str, who: Who) -> Response:
        """A page of it; 503 where another broker has it."""
        _peers_only(who)
        page = await topics.history(check_topic(topic), after, through)
        if page is None:
            raise Unavailable(f"the topic {topic!r} is stamped elsewhere")
        return reply(page)

    @router.post("/brokers/{name}/leaving", **operation(takes=Batch, gives=Known, summary="Let a broker go"))
    async def leaving(name: str, request: Request, who: Who, api: Shared) -> Response:
        """From that broker itself: topics are shared out without it, and its logs fetched. Who counts then.

        The topics that it names are kept here though another should have them, for that one does not answer.
        """
        _peers_only(who)
        who.need("broker", name)
        leaver = await _batch(request, api)
        if leaver.broker != name:
            raise BadArgument("broker", name, leaver.broker)
        return reply(topics.leaves(leaver))

    @router.get("/topology", **operation(gives=Known, summary="Show who lives"))
    async def topology(who: Who) -> Response:
        """The brokers among which topics are shared out, as this one was told."""
        _peers_only(who)
        return reply(topics.known)

    return router


async def _batch(request: Request, api: Api) -> Batch:
    body = await read_bytes(request, MAX_BATCH_BYTES, api.core.settings.login_timeout)
    batch = decode(body, Batch)
    for topic in batch.topics:
        check_topic(topic)
    return batch


def _peers_only(who: Principal) -> None:
    if not is_peer(who):
        raise Refused("this is for brokers")
