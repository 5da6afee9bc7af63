"""What a supervisor asks, without a token; and Prometheus' metrics."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Depends
from starlette.responses import Response

from tocsin import __version__
from tocsin.coordinator.api.context import Shared
from tocsin.coordinator.metrics import CONTENT_TYPE
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


@router.get("/readyz", **operation(gives=Readiness, summary="Does the coordinator take requests?"))
async def readyz(api: Shared) -> Response:
    """503 from the start of a drain, and where its state cannot be made durable."""
    if api.is_draining:
        raise Unavailable("the coordinator is draining")
    if api.service.failure is not None:
        raise api.service.failure
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
    return Response(api.metrics.render(), headers={"Content-Type": CONTENT_TYPE})
