"""What a supervisor asks, without a token; and Prometheus' metrics."""

from __future__ import annotations

from fastapi import Depends
from starlette.responses import Response

from tocsin.coordinator.api.context import Shared
from tocsin.coordinator.metrics import CONTENT_TYPE
from tocsin.errors import Unavailable
from tocsin.web.auth import may_scrape
from tocsin.web.describe import operation, reply
from tocsin.web.probes import MESSAGES, Readiness, Version, exposition, probe_router, readiness, versioned

__all__ = ["MESSAGES", "router"]

router = probe_router()


@router.get("/readyz", **readiness("Does the coordinator take requests?"))
async def readyz(api: Shared) -> Response:
    """503 from the start of a drain, and where its state cannot be made durable."""
    if api.is_draining:
        raise Unavailable("the coordinator is draining")
    if api.service.failure is not None:
        raise api.service.failure
    return reply(Readiness(True))


@router.get("/version", **operation(gives=Version, summary="Name and version"))
async def version() -> Response:
    return versioned()


@router.get("/metrics", dependencies=[Depends(may_scrape)], **exposition())
async def metrics(api: Shared) -> Response:
    return Response(api.metrics.render(), headers={"Content-Type": CONTENT_TYPE})
