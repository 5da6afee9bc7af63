"""The REST application of the data cluster, put together as ``tocsin.web.app`` says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import FastAPI

from tocsin.datacluster.api import (
    brokers,
    channels,
    datasets,
    feeds,
    pages,
    probes,
    records,
    statements,
    status,
    subscriptions,
)
from tocsin.datacluster.api.context import Api
from tocsin.datacluster.api.limits import ApiLimits
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.service import ClusterService
from tocsin.tokens import Principal
from tocsin.web.app import add_errors, add_middleware, add_routes, describe, new_app

GUARDED = (statements, records, datasets, channels, subscriptions, brokers, feeds, status)
MESSAGES = tuple(message for module in (*GUARDED, pages, probes) for message in module.MESSAGES)


def create_app(
    service: ClusterService,
    *,
    verify: Callable[[str], Principal],
    insecure: bool = False,
    limits: ApiLimits | None = None,
    metrics: Metrics | None = None,
    allowed_origins: Sequence[str] = (),
    open_metrics: bool = False,
) -> FastAPI:
    """The application that serves ``service``. ``verify`` gives the principal of a token, or Unauthenticated."""
    counted = metrics or Metrics()
    api = Api(service, verify, limits or ApiLimits(), counted, insecure=insecure, open_metrics=open_metrics)
    app = new_app("Tocsin data cluster", api)
    add_routes(app, unguarded=[probes.router], guarded=[module.router for module in GUARDED])
    add_errors(app)
    add_middleware(app, counted, insecure, allowed_origins)
    describe(app, MESSAGES)
    return app
