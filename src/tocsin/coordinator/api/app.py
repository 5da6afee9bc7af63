"""The REST application of the coordinator, put together as ``tocsin.web.app`` says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI

from tocsin.coordinator.api import balancing, brokers, loads, plans, probes, users
from tocsin.coordinator.api.context import Api, ApiLimits
from tocsin.coordinator.service import Coordinator
from tocsin.tokens import Principal
from tocsin.web.app import add_errors, add_middleware, add_routes, describe, new_app
from tocsin.web.segments import Segments

GUARDED = (brokers, users, plans, loads, balancing)
MESSAGES = tuple(message for module in (*GUARDED, probes) for message in module.MESSAGES)


def create_app(
    service: Coordinator,
    *,
    verify: Callable[[str], Principal],
    insecure: bool = False,
    limits: ApiLimits | None = None,
    configured: str = "",
    allowed_origins: Sequence[str] = (),
    open_metrics: bool = False,
) -> FastAPI:
    """``configured`` is the placement policy as the configuration has it."""
    api = Api(
        service, verify, limits or ApiLimits(), configured, insecure=insecure, open_metrics=open_metrics
    )  # fmt: skip
    app = new_app("Tocsin coordinator", api)
    add_routes(app, unguarded=[probes.router], guarded=[module.router for module in GUARDED])
    add_errors(app)
    app.add_middleware(Segments)
    add_middleware(app, service.metrics, insecure, allowed_origins)
    describe(app, MESSAGES)
    return app
