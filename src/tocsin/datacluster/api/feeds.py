"""``/feeds``: where records come from."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.web.auth import Who
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["feeds"])


class Feed(msgspec.Struct, frozen=True):
    """``kind`` is ``http``, ``directory`` or ``kafka``."""

    name: str
    dataset: str
    kind: str
    state: str
    records: int
    problem: str | None


class Feeds(msgspec.Struct, frozen=True):
    feeds: list[Feed]


MESSAGES = (Feed, Feeds)


@router.get("/feeds", **operation(gives=Feeds, summary="List feeds"))
async def list_feeds(api: Shared, who: Who) -> Response:
    views = await api.call(api.service.feeds, who)
    feeds = [Feed(one.name, one.dataset, one.kind, one.state, one.records, one.problem) for one in views]
    return reply(Feeds(feeds))
