"""Who asks. What they may do is for the service to say, save for metrics, which it does not know.

An application has its ``Guard`` at ``app.state.api``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Protocol

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from tocsin.errors import Refused
from tocsin.tokens import LOCAL_ADMIN, Principal, bearer

# Only describes the scheme in the OpenAPI document; the header itself is read by ``tocsin.tokens``.
_scheme = HTTPBearer(auto_error=False, bearerFormat="JWT", scheme_name="token", description="A signed JSON Web Token.")


class Guard(Protocol):
    verify: Callable[[str], Principal]
    insecure: bool
    open_metrics: bool


async def _guard(request: Request) -> Guard:
    guard: Guard = request.app.state.api
    return guard


_Guarded = Annotated[Guard, Depends(_guard)]


async def authenticate(request: Request, api: _Guarded, _: Annotated[object, Depends(_scheme)]) -> Principal:
    """The principal of the token, or Unauthenticated; the local administrator where tokens are off."""
    if api.insecure:
        return LOCAL_ADMIN
    return api.verify(bearer(request.headers.get("authorization")))


Who = Annotated[Principal, Depends(authenticate)]


async def may_scrape(request: Request, api: _Guarded, _: Annotated[object, Depends(_scheme)]) -> None:
    """Metrics take a token that may ``read``, unless they were declared open."""
    if api.open_metrics:
        return
    who = api.verify(bearer(request.headers.get("authorization")))
    if not who.may("read"):
        raise Refused("reading metrics needs the capability 'read'")
