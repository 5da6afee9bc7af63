"""The REST application: routers, errors, middleware, and the OpenAPI document, put together.

Every router in ``GUARDED`` asks for a token before anything else happens, so a new route is guarded by being
there. There is no Swagger page, since its scripts would come from another host; ``/openapi.json`` has all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from tocsin import __version__
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
from tocsin.datacluster.api.auth import authenticate
from tocsin.datacluster.api.context import Api
from tocsin.datacluster.api.describe import add_components
from tocsin.datacluster.api.limits import ApiLimits
from tocsin.datacluster.api.loopback import LoopbackOnly
from tocsin.datacluster.api.observe import Observe
from tocsin.datacluster.api.problems import InvalidRequest, problem, problem_of
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.service import ClusterService
from tocsin.errors import TocsinError
from tocsin.tokens import Principal

GUARDED = (statements, records, datasets, channels, subscriptions, brokers, feeds, status)
MESSAGES = tuple(message for module in (*GUARDED, pages, probes) for message in module.MESSAGES)
SHOWN_PROBLEMS = 5


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
    app = FastAPI(
        title="Tocsin data cluster",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.api = Api(service, verify, limits or ApiLimits(), counted, insecure=insecure, open_metrics=open_metrics)
    _add_routes(app)
    _add_errors(app)
    _add_middleware(app, counted, insecure, allowed_origins)
    _describe(app)
    return app


def _add_routes(app: FastAPI) -> None:
    guarded = APIRouter(dependencies=[Depends(authenticate)])
    for module in GUARDED:
        guarded.include_router(module.router)
    app.include_router(probes.router)
    app.include_router(guarded)


def _add_errors(app: FastAPI) -> None:
    app.exception_handler(TocsinError)(_on_own_error)
    app.exception_handler(RequestValidationError)(_on_bad_parameter)
    app.exception_handler(HTTPException)(_on_http_error)


def _add_middleware(app: FastAPI, metrics: Metrics, insecure: bool, allowed_origins: Sequence[str]) -> None:
    """The last one added is the outermost."""
    if insecure:
        app.add_middleware(LoopbackOnly, allowed_origins=allowed_origins)
    if allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=allowed_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(Observe, metrics=metrics)


def _describe(app: FastAPI) -> None:
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = add_components(generate(), MESSAGES)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


async def _on_own_error(_: Request, error: TocsinError) -> Response:
    return problem_of(error)


async def _on_bad_parameter(_: Request, error: RequestValidationError) -> Response:
    """What is wrong with query, path or headers; their values are not repeated."""
    found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return problem_of(InvalidRequest("; ".join(found[:SHOWN_PROBLEMS])))


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    path = request.url.path
    if error.status_code == 405:
        detail = f"{request.method:.20} is not possible at {path!r:.120}"
        return problem("method-not-allowed", detail, error.headers)
    if error.status_code == 404:
        return problem("no-such-route", f"there is nothing at {path!r:.120}; /openapi.json lists what there is")
    return problem("malformed-body", str(error.detail))
