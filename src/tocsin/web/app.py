"""Putting an application together: routers, errors, middleware, and the OpenAPI document.

Every router that is handed over as guarded asks for a token before anything else happens, so a new route is
guarded by being there. There is no Swagger page, since its scripts would come from another host;
``/openapi.json`` has all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from tocsin import __version__
from tocsin.errors import TocsinError
from tocsin.web.auth import authenticate
from tocsin.web.describe import add_components
from tocsin.web.loopback import LoopbackOnly
from tocsin.web.observe import HttpMetrics, Observe
from tocsin.web.problems import InvalidRequest, problem, problem_of

SHOWN_PROBLEMS = 5


def new_app(title: str, api: Any) -> FastAPI:
    """An application without routes; ``api`` is what its routes share."""
    app = FastAPI(
        title=title,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.api = api
    return app


def add_routes(app: FastAPI, *, unguarded: Iterable[APIRouter], guarded: Iterable[APIRouter]) -> None:
    closed = APIRouter(dependencies=[Depends(authenticate)])
    for router in guarded:
        closed.include_router(router)
    for router in unguarded:
        app.include_router(router)
    app.include_router(closed)


def add_errors(app: FastAPI) -> None:
    app.exception_handler(TocsinError)(_on_own_error)
    app.exception_handler(RequestValidationError)(_on_bad_parameter)
    app.exception_handler(HTTPException)(_on_http_error)


def add_middleware(app: FastAPI, metrics: HttpMetrics, insecure: bool, allowed_origins: Sequence[str]) -> None:
    """The last one added is the outermost."""
    if insecure:
        app.add_middleware(LoopbackOnly, allowed_origins=allowed_origins)
    if allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=allowed_origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
            expose_headers=["Retry-After"],
        )
    app.add_middleware(Observe, metrics=metrics)


def describe(app: FastAPI, messages: Sequence[type]) -> None:
    """Let the document have the schemas of these messages."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = add_components(generate(), messages)
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
