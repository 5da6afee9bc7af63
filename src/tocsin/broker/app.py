"""The broker over HTTP: publish, the cluster's notices, and what supervisors ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import Response

from tocsin.broker.allowances import Allowances
from tocsin.broker.core import Core
from tocsin.broker.described import describe_events
from tocsin.broker.metrics import CONTENT_TYPE, Metrics
from tocsin.broker.payloads import check_payload
from tocsin.broker.ports import Notices, is_peer
from tocsin.errors import BadArgument, Unavailable
from tocsin.web.app import add_errors, add_middleware, add_routes, describe, new_app
from tocsin.web.auth import Who, may_scrape
from tocsin.web.bodies import read_bytes
from tocsin.web.describe import operation, reply
from tocsin.web.probes import MESSAGES as PROBES
from tocsin.web.probes import Readiness, Version, exposition, probe_router, readiness, versioned
from tocsin.web.problems import MalformedBody

probes = probe_router()
guarded = APIRouter(tags=["broker"])


class PublishedAt(msgspec.Struct, frozen=True):
    topic: str
    position: str


MESSAGES = (*PROBES, PublishedAt)
_VALUE = {"requestBody": {"required": True, "content": {"application/json": {"schema": {}}}}}
PUBLISH = operation(gives=PublishedAt, summary="Publish one JSON value", openapi_extra=_VALUE)


class Api:
    """What the routes share, at ``app.state.api``."""

    def __init__(self, core: Core, notices: Notices, *, open_metrics: bool) -> None:
        self.core, self.notices = core, notices
        self.verify = core.admission.principal
        self.insecure = core.settings.insecure
        self.open_metrics = open_metrics or self.insecure
        self.metrics = Metrics(core)
        self.allowances = Allowances(core.settings.max_messages_per_s, core.now)


async def _api(request: Request) -> Api:
    api: Api = request.app.state.api
    return api


Shared = Annotated[Api, Depends(_api)]


def create_app(
    core: Core,
    notices: Notices,
    routers: Sequence[APIRouter] = (),
    messages: Sequence[type] = (),
    *,
    origins: Sequence[str] = (),
    open_metrics: bool = False,
) -> FastAPI:
    """The application. ``routers`` and their ``messages`` are further ones, guarded by a token like our own."""
    api = Api(core, notices, open_metrics=open_metrics)
    app = new_app("Tocsin broker", api)
    add_routes(app, unguarded=[probes], guarded=[guarded, *routers])
    add_errors(app)
    add_middleware(app, api.metrics, api.insecure, origins)
    describe(app, [*MESSAGES, *messages])
    describe_events(app)
    return app


@probes.get("/readyz", **readiness("Does the broker take subscribers?"))
async def readyz(api: Shared) -> Response:
    """503 from the start of a drain, and while the coordinator does not take the broker."""
    if api.core.is_draining:
        raise Unavailable("the broker is draining")
    if api.core.directory.refused is not None:
        raise Unavailable(f"the coordinator does not take this broker: {api.core.directory.refused}")
    return reply(Readiness(True))


@probes.get("/version", **operation(gives=Version, summary="Name and version"))
async def version(api: Shared) -> Response:
    return versioned(api.core.name)


@probes.get("/metrics", dependencies=[Depends(may_scrape)], **exposition())
async def metrics(api: Shared) -> Response:
    return Response(api.metrics.render(), headers={"Content-Type": CONTENT_TYPE})


@guarded.post("/topics/{topic:path}/messages", **PUBLISH)
async def publish(topic: str, request: Request, who: Who, api: Shared) -> Response:
    """Answered when the topic's owner has stamped it; 429 where the user sends faster than a connection may."""
    settings = api.core.settings
    if not is_peer(who):
        api.allowances.take(who.subject)
    payload = await read_bytes(request, settings.max_message_bytes, settings.login_timeout)
    _check_json(payload)
    return reply(PublishedAt(topic, await api.core.publisher.publish(topic, payload, who)))


@guarded.post("/notify", **operation(status=204, summary="The data cluster has new results"))
async def notify(request: Request, who: Who, api: Shared) -> Response:
    """Needs the capability `notify`."""
    who.need("notify")
    settings = api.core.settings
    await api.notices.noticed(await read_bytes(request, settings.max_notice_bytes, settings.login_timeout), who)
    return Response(status_code=204)


def _check_json(payload: bytes) -> None:
    try:
        check_payload(payload)
    except BadArgument as problem:
        raise MalformedBody(str(problem)) from None
