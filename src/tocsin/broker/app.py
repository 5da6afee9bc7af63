"""The broker over HTTP: publish, the cluster's notices, and what supervisors ask. Errors are problem+json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from tocsin import __version__
from tocsin.broker.core import Core
from tocsin.broker.metrics import CONTENT_TYPE, registry_of, render
from tocsin.broker.ports import Notices
from tocsin.errors import BadArgument, LimitExceeded, Refused, TocsinError, Unavailable
from tocsin.tokens import Principal, bearer

STATUS: Mapping[str, int] = {
    "unauthenticated": 401,
    "forbidden": 403,
    "not-found": 404,
    "no-such-route": 404,
    "method-not-allowed": 405,
    "already-exists": 409,
    "limit-exceeded": 413,
    "bad-argument": 422,
    "unavailable": 503,
}
RETRY_AFTER_S = 5
probes = APIRouter(tags=["probes"])
guarded = APIRouter(tags=["broker"])


class Published(msgspec.Struct, frozen=True):
    topic: str
    position: str


def create_app(
    core: Core,
    notices: Notices,
    routers: Sequence[APIRouter] = (),
    *,
    origins: Sequence[str] = (),
    open_metrics: bool = False,
) -> FastAPI:
    """The application; ``routers`` are further ones, of upstreams, whose routes ask ``who`` themselves."""
    app = FastAPI(title="Tocsin broker", version=__version__, docs_url=None, redoc_url=None)
    app.state.core, app.state.notices, app.state.open_metrics = core, notices, open_metrics
    app.state.registry = registry_of(core)
    for router in (probes, guarded, *routers):
        app.include_router(router)
    app.exception_handler(TocsinError)(_on_own_error)
    app.exception_handler(HTTPException)(_on_http_error)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


async def authenticate(request: Request) -> Principal:
    """The principal of the request's token, or Unauthenticated."""
    core: Core = request.app.state.core
    header = request.headers.get("authorization")
    return core.admission.principal(None if header is None and core.settings.insecure else bearer(header))


Who = Annotated[Principal, Depends(authenticate)]


@probes.get("/healthz")
async def healthz() -> Response:
    return _json({"alive": True})


@probes.get("/readyz")
async def readyz(request: Request) -> Response:
    if request.app.state.core.is_draining:
        raise Unavailable("the broker is draining")
    return _json({"ready": True})


@probes.get("/version")
async def version(request: Request) -> Response:
    return _json({"name": "tocsin", "version": __version__, "broker": request.app.state.core.name})


@probes.get("/metrics")
async def metrics(request: Request) -> Response:
    if not request.app.state.open_metrics and not (await authenticate(request)).may("read"):
        raise Refused("reading metrics needs the capability 'read'")
    return Response(render(request.app.state.registry), headers={"Content-Type": CONTENT_TYPE})


@guarded.post("/topics/{topic:path}/messages")
async def publish(topic: str, request: Request, who: Who) -> Response:
    """Publish the body, which is one JSON value; answered when the topic's owner has stamped it."""
    core: Core = request.app.state.core
    payload = await body_of(request, core.settings.max_message_bytes)
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except msgspec.DecodeError as problem:
        raise BadArgument("payload", "a JSON value", str(problem)) from None
    return _json(Published(topic, await core.publisher.publish(topic, payload, who)))


@guarded.post("/notify")
async def notify(request: Request, who: Who) -> Response:
    """The data cluster has new results."""
    limit = request.app.state.core.settings.max_notice_bytes
    await request.app.state.notices.noticed(await body_of(request, limit), who)
    return Response(status_code=204)


async def body_of(request: Request, limit: int) -> bytes:
    """The request's body; LimitExceeded as soon as it is longer than ``limit``."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise LimitExceeded("the body, in bytes", limit)
    return bytes(body)


def problem(code: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    status = STATUS.get(code, 500)
    body = {"type": f"urn:tocsin:{code}", "title": code, "status": status, "detail": detail}
    return Response(msgspec.json.encode(body), status, dict(headers or {}), "application/problem+json")


async def _on_own_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, TocsinError)
    if isinstance(error, LimitExceeded) and error.retry_after_s is not None:
        answer = problem(error.code, str(error), {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))})
        answer.status_code = 429
        return answer
    headers = {"Retry-After": str(RETRY_AFTER_S)} if error.code == "unavailable" else {}
    return problem(error.code, str(error), headers)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = "method-not-allowed" if error.status_code == 405 else "no-such-route"
    return problem(code, f"{request.method:.20} is not possible at {request.url.path!r:.120}")


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
