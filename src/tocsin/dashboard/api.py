"""What the pages ask of the dashboard itself. Actions are not among it: a page takes those to the coordinator, with
the token of whoever sits before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tocsin.dashboard import city
from tocsin.dashboard.city import Scene
from tocsin.dashboard.entering import Door
from tocsin.dashboard.history import Past
from tocsin.dashboard.lab import Lab, StudyAsked, StudyShown
from tocsin.dashboard.stage import Stage
from tocsin.dashboard.telling import SYSTEM, Speaker
from tocsin.errors import Refused
from tocsin.tokens import Principal
from tocsin.web.auth import Who
from tocsin.web.bodies import read_json
from tocsin.web.describe import operation, reply, reply_bytes

opened = APIRouter(tags=["dashboard"])
guarded = APIRouter(tags=["dashboard"])


class Source(Protocol):
    """Where samples come from: the running system, or a recording."""

    @property
    def channels(self) -> list[dict[str, Any]]: ...

    def past(self) -> Past: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the bodies of requests."""

    body_bytes: int = 100_000
    body_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Dashboard:
    """What the routes share, at ``app.state.dashboard``."""

    source: Source
    stage: Stage
    door: Door
    lab: Lab
    addresses: Addresses
    speaker: Speaker
    limits: Limits = field(default_factory=Limits)


class Addresses(msgspec.Struct, frozen=True):
    """Where a page finds the others; ``insecure`` where none of them asks for a token."""

    coordinator: str
    cluster: str
    insecure: bool
    replay: bool


class Entering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ticket: str


class Entered(msgspec.Struct, frozen=True):
    token: str


class Subscribable(msgspec.Struct, frozen=True):
    """A channel as one who may subscribe to it has to know it."""

    name: str
    parameters: list[Any]
    mode: str
    state: str


class SubscribableChannels(msgspec.Struct, frozen=True):
    channels: list[Subscribable]


MESSAGES = (Addresses, Entering, Entered, SubscribableChannels, Scene, StudyAsked, StudyShown)


async def _dashboard(request: Request) -> Dashboard:
    dashboard: Dashboard = request.app.state.dashboard
    return dashboard


Shared = Annotated[Dashboard, Depends(_dashboard)]


def check_reads(who: Principal) -> None:
    if not (who.may("read") or who.may("coordinator")):
        raise Refused("this needs the capability 'read' or 'coordinator'")


@opened.get("/api/addresses", **operation(gives=Addresses, summary="Where the other parts are"))
async def addresses(dashboard: Shared) -> Response:
    return reply(dashboard.addresses)


@opened.post("/api/enter", **operation(takes=Entering, gives=Entered, summary="Exchange a printed address for a token"))
async def enter(request: Request, dashboard: Shared) -> Response:
    """Once for each address."""
    asked = await read_json(request, Entering, dashboard.limits)
    return reply(Entered(dashboard.door.enter(asked.ticket)))


@opened.get("/api/lab/claims", **operation(summary="The papers' claims beside what was measured"))
async def claims(dashboard: Shared) -> Response:
    return reply(dashboard.lab.report())


@opened.get("/api/lab/figures/{paper}/{name}", **operation(summary="A figure as PNG"))
async def figure(paper: str, name: str, dashboard: Shared) -> Response:
    return Response(dashboard.lab.figure(paper, name), media_type="image/png")


@guarded.get("/api/history", **operation(summary="The samples there are"))
async def history(dashboard: Shared, who: Who) -> Response:
    """Needs the capability `read`."""
    check_reads(who)
    return reply({"position": dashboard.speaker.positions.get(SYSTEM), "past": dashboard.source.past()})


@guarded.get(
    "/api/channels", **operation(gives=SubscribableChannels, summary="Channels that the token may subscribe to")
)
async def channels(dashboard: Shared, who: Who) -> Response:
    return reply(SubscribableChannels([_subscribable(c) for c in dashboard.source.channels if _may(who, c["name"])]))


@guarded.get("/api/city", **operation(summary="The city on the map"))
async def show_city(dashboard: Shared, who: Who) -> Response:
    """``world`` is null where there is none. Who is at which broker (``placed``) and where everybody was last
    (``people``) are for who may follow the topic: this needs the capability `topic:city`."""
    speaker, world, may_see = dashboard.speaker, dashboard.stage.shown, who.may("topic", city.TOPIC)
    if world is not None and not may_see:
        world |= {"placed": None}
    position, people = speaker.positions.get(city.TOPIC), speaker.people if may_see else None
    return reply({"position": position, "world": world, "people": people})


@guarded.put("/api/city", **operation(takes=Scene, status=204, summary="Put a city on the map"))
async def set_city(request: Request, dashboard: Shared, who: Who) -> Response:
    """For who feeds it: needs the capability `publish:city`."""
    who.need("publish", city.TOPIC)
    await dashboard.stage.set(await read_json(request, Scene, dashboard.limits))
    await dashboard.speaker.city({"k": "world"})
    return Response(status_code=204)


@guarded.post("/api/lab/study", **operation(takes=StudyAsked, gives=StudyShown, summary="Run a study"))
async def study(request: Request, dashboard: Shared, who: Who) -> Response:
    """One at a time; needs the capability `coordinator`, for it takes a core for seconds."""
    who.need("coordinator")
    asked = await read_json(request, StudyAsked, dashboard.limits)
    return reply_bytes(await dashboard.lab.study(asked))


def _may(who: Principal, channel: str) -> bool:
    return who.may("subscribe", channel)


def _subscribable(channel: dict[str, Any]) -> Subscribable:
    return Subscribable(channel["name"], channel["parameters"], channel["mode"], channel["state"])
