"""What a supervisor asks, without a token: is it alive, is it ready, what is it. And Prometheus' metrics.

Probes have threads of their own: a cluster that is busy is neither dead nor unready.
"""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Depends
from starlette.responses import Response

from tocsin import __version__
from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.metrics import CONTENT_TYPE
from tocsin.errors import Unavailable
from tocsin.web.auth import may_scrape
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["probes"])


class Health(msgspec.Struct, frozen=True):
    alive: bool


class Readiness(msgspec.Struct, frozen=True):
    ready: bool


class Version(msgspec.Struct, frozen=True):
    name: str
    version: str


MESSAGES = (Health, Readiness, Version)


@router.get("/healthz", **operation(gives=Health, summary="Is the process alive?"))
async def healthz() -> Response:
    return reply(Health(True))


@router.get("/readyz", **operation(gives=Readiness, summary="Does the cluster take requests?"))
async def readyz(api: Shared) -> Response:
    """503 with the reason until it does, and again from the start of a drain."""
    if api.is_draining:
        raise Unavailable("the cluster is draining")
    status = await api.call_in(api.lanes.probes, api.service.status)
    if not status.is_ready:
        raise Unavailable(status.reason)
    return reply(Readiness(True))


@router.get("/version", **operation(gives=Version, summary="Name and version"))
async def version() -> Response:
    return reply(Version("tocsin", __version__))


_EXPOSITION = {200: {"description": "Prometheus' text format", "content": {"text/plain": {}}}}


@router.get(
    "/metrics",
    dependencies=[Depends(may_scrape)],
    **operation(responses=_EXPOSITION | {"default": operation()["responses"]["default"]}, summary="Metrics"),
)
async def metrics(api: Shared) -> Response:
    text = await api.call_in(api.lanes.probes, api.metrics.render)
    return Response(text, headers={"Content-Type": CONTENT_TYPE})
