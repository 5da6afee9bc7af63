"""Where tokens are off, only this machine's own programs and pages may ask.

Binding to loopback keeps other machines out, not other pages in a browser on this one. So the ``Host`` must
be a loopback name (a foreign name that resolves to loopback is an attack), and a request that a page sends
must come from a loopback page or an allowed origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from tocsin.errors import Refused
from tocsin.web.problems import problem_of


class LoopbackOnly:
    def __init__(self, app: ASGIApp, allowed_origins: Collection[str] = ()) -> None:
        self._app, self._allowed = app, frozenset(allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (problem_of(Refused(refusal)) if refusal else self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> str | None:
        if problem := foreign_host(headers.getlist("host")):
            return problem
        origin = headers.get("origin")
        if origin is None or origin in self._allowed or is_loopback(origin):
            return None
        return f"without tokens pages of {origin!r:.120} may not ask; add it to the allowed origins"


def foreign_host(hosts: Sequence[str]) -> str | None:
    """What is wrong with a request that names these hosts; None where it names this machine and nothing else."""
    if hosts and all(is_loopback(f"//{host}") for host in hosts):
        return None
    return f"without tokens the Host must be a loopback name such as localhost, got {', '.join(hosts)!r:.120}"


def is_loopback(url: str) -> bool:
    """Whether the host in ``url`` is this machine by name or number."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
