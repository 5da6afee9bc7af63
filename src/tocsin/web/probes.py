"""What a supervisor asks of every server without a token, as far as the answer is the same for all."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from tocsin import __version__
from tocsin.web.describe import operation, reply


class Health(msgspec.Struct, frozen=True):
    alive: bool


class Readiness(msgspec.Struct, frozen=True):
    ready: bool


class Version(msgspec.Struct, frozen=True, omit_defaults=True):
    """``broker`` is the name of the one that answers."""

    name: str
    version: str
    broker: str | None = None


MESSAGES = (Health, Readiness, Version)

_EXPOSITION = {200: {"description": "Prometheus' text format", "content": {"text/plain": {}}}}


def probe_router() -> APIRouter:
    """With ``/healthz``; a server adds when it is ready, its version and its metrics."""
    router = APIRouter(tags=["probes"])

    @router.get("/healthz", **operation(gives=Health, summary="Is the process alive?"))
    async def healthz() -> Response:
        return reply(Health(True))

    return router


def readiness(of: str) -> dict[str, Any]:
    """How ``/readyz`` is described."""
    return operation(gives=Readiness, summary=of)


def exposition() -> dict[str, Any]:
    """How ``/metrics`` is described."""
    return operation(responses=_EXPOSITION | {"default": operation()["responses"]["default"]}, summary="Metrics")


def versioned(broker: str | None = None) -> Response:
    return reply(Version("tocsin", __version__, broker))
