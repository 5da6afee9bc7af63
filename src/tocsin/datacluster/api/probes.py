"""What a supervisor asks, without a token: is it alive, is it ready, what is it. And Prometheus' metrics.

Probes have threads of their own: a cluster that is busy is neither dead nor unready.
"""

from __future__ import annotations

from fastapi import Depends
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.metrics import CONTENT_TYPE
from tocsin.errors import Unavailable
from tocsin.web.auth import may_scrape
from tocsin.web.describe import operation, reply
from tocsin.web.probes import MESSAGES, Readiness, Version, exposition, probe_router, readiness, versioned

__all__ = ["MESSAGES", "router"]

router = probe_router()


@router.get("/readyz", **readiness("Does the cluster take requests?"))
async def readyz(api: Shared) -> Response:
    """503 with the reason until it does, and again from the start of a drain."""
    if api.is_draining:
        raise Unavailable("the cluster is draining")
    reason = await api.call_in(api.lanes.probes, api.service.unready)
    if reason is not None:
        raise Unavailable(reason)
    return reply(Readiness(True))


@router.get("/version", **operation(gives=Version, summary="Name and version"))
async def version() -> Response:
    return versioned()


@router.get("/metrics", dependencies=[Depends(may_scrape)], **exposition())
async def metrics(api: Shared) -> Response:
    text = await api.call_in(api.lanes.probes, api.metrics.render)
    return Response(text, headers={"Content-Type": CONTENT_TYPE})
