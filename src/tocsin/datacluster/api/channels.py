"""``/channels``: what runs, how it is compiled, and what it found."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tocsin.datacluster.api.context import Api, Shared
from tocsin.datacluster.api.named import NameAndType, find, pairs
from tocsin.datacluster.api.pages import Page, page_of
from tocsin.datacluster.service import ChannelView
from tocsin.errors import TocsinError
from tocsin.model.position import START, Position
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import check_items, read_json
from tocsin.web.describe import encode, operation, reply, reply_bytes
from tocsin.web.problems import problem_of

router = APIRouter(tags=["channels"])

Backend = Annotated[int, Query(ge=0, lt=2**63, description="The backend subscription.")]
After = Annotated[str | None, Query(description="Begin after this position; without it, at the beginning.")]
Through = Annotated[str | None, Query(description="End with this position; without it, at the newest result.")]
Limit = Annotated[int, Query(ge=1, description="Rows wanted; the cluster may give fewer.")]


class Channel(msgspec.Struct, frozen=True):
    """``mode`` is ``continuous`` or ``every <period>``; ``problem`` says why a failing channel fails."""

    name: str
    parameters: list[NameAndType]
    mode: str
    push: bool
    state: str
    strategy: str
    subscriptions: int
    backends: int
    executions: int
    lag_s: float
    problem: str | None
    query: str


class Channels(msgspec.Struct, frozen=True):
    channels: list[Channel]


class Explanation(msgspec.Struct, frozen=True):
    """The shared plan, its SQL, the strategy and why, the counts of the last executions."""

    channel: str
    explanation: dict[str, Any]


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one backend subscription got after ``after`` up to ``through``."""

    channel: str
    backend: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    after: str
    through: str


class Replay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``limit`` is of the rows of each page."""

    spans: list[Span]
    limit: Annotated[int, msgspec.Meta(ge=1)] = 1000


class Replayed(msgspec.Struct, frozen=True):
    """A page, or the problem that a request for it alone would answer."""

    page: Page | None = None
    problem: dict[str, Any] | None = None


class ManyReplayed(msgspec.Struct, frozen=True):
    replayed: list[Replayed]


MESSAGES = (Channel, Channels, Explanation, Span, Replay, Replayed, ManyReplayed)


@router.get("/channels", **operation(gives=Channels, summary="List channels"))
async def list_channels(api: Shared, who: Who) -> Response:
    views = await api.call(api.service.channels, who)
    return reply(Channels([_channel(view) for view in views]))


@router.get("/channels/{name}", **operation(gives=Channel, summary="Show a channel"))
async def show_channel(name: str, api: Shared, who: Who) -> Response:
    views = await api.call(api.service.channels, who)
    return reply(_channel(find("channel", name, views)))


@router.get("/channels/{name}/explain", **operation(gives=Explanation, summary="Explain a channel"))
async def explain_channel(name: str, api: Shared, who: Who) -> Response:
    explanation = await api.call(api.service.explain, name, who)
    return reply(Explanation(name, dict(explanation)))


@router.get("/channels/{name}/results", **operation(gives=Page, summary="Replay results"))
async def replay_results(
    name: str,
    api: Shared,
    who: Who,
    backend: Backend,
    after: After = None,
    through: Through = None,
    limit: Limit = 1000,
) -> Response:
    """The results of one backend subscription after ``after`` up to ``through``, while they are kept."""
    first = Position.parse(after) if after is not None else START
    last = Position.parse(through) if through is not None else None
    rows = min(limit, api.limits.page_rows)

    def run() -> bytes:
        return encode(page_of(api.service.replay(name, backend, first, last, rows, who)))

    return reply_bytes(await api.call(run))


@router.post("/results", **operation(takes=Replay, gives=ManyReplayed, summary="Replay results of many"))
async def replay_many(request: Request, api: Shared, who: Who) -> Response:
    """An answer for each span, in their order; for the first of them only, where all are too much at once."""
    asked = await read_json(request, Replay, api.limits)
    check_items("spans in one request", len(asked.spans), api.limits.items)
    return reply_bytes(await api.call(_replay_all, api, asked, who))


def _replay_all(api: Api, asked: Replay, who: Principal) -> bytes:
    rows, size = min(asked.limit, api.limits.page_rows), 0
    found: list[Replayed] = []
    for span in asked.spans:
        one = _replay(api, span, rows, who)
        found.append(one)
        size += sum([len(result.payload) for result in one.page.results]) if one.page else 0
        if size >= api.limits.page_bytes:
            break
    return encode(ManyReplayed(found))


def _replay(api: Api, span: Span, rows: int, who: Principal) -> Replayed:
    try:
        after, through = Position.parse(span.after), Position.parse(span.through)
        return Replayed(page_of(api.service.replay(span.channel, span.backend, after, through, rows, who)))
    except TocsinError as error:
        return Replayed(problem=msgspec.json.decode(problem_of(error).body))


def _channel(view: ChannelView) -> Channel:
    return Channel(
        name=view.name,
        parameters=pairs(view.parameters),
        mode=view.mode,
        push=view.is_push,
        state=view.state,
        strategy=view.strategy,
        subscriptions=view.subscriptions,
        backends=view.backends,
        executions=view.executions,
        lag_s=view.lag_s,
        problem=view.problem,
        query=view.query,
    )
