"""``/status`` for people and programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.service import Status
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["status"])


class ClusterStatus(msgspec.Struct, frozen=True):
    ready: bool
    reason: str
    started_at: str
    spark: dict[str, Any]
    totals: dict[str, Any]


MESSAGES = (ClusterStatus,)


@router.get("/status", **operation(gives=ClusterStatus, summary="Show the cluster's state"))
async def show_status(api: Shared) -> Response:
    return reply(_status(await api.call(api.service.status)))


def _status(status: Status) -> ClusterStatus:
    started = datetime.fromtimestamp(status.started_at, UTC).isoformat().replace("+00:00", "Z")
    return ClusterStatus(status.is_ready, status.reason, started, dict(status.spark), dict(status.totals))
