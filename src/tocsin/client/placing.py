"""Asking the coordinator which broker a user belongs to."""

from __future__ import annotations

import ssl
from functools import cache
from urllib.parse import quote

import httpx
import msgspec

from tocsin.errors import TocsinError, Unauthenticated, Unavailable
from tocsin.protocol.coordination import Placement, PlacementRequest
from tocsin.unanswered import UNANSWERED

_PASSING = (408, 425, 429)
_OF_THE_TOKEN = (401, 403)


class PlacementRefused(TocsinError):
    """The coordinator will not place this user, however often it is asked."""

    code = "placement-refused"


async def place(
    coordinator: str,
    user: str,
    token: str | None,
    location: tuple[float, float] | None,
    timeout_s: float,
    tls: ssl.SSLContext | None = None,
) -> Placement:
    """Where ``user`` belongs; Unauthenticated, PlacementRefused, or Unavailable where trying again may help."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = msgspec.json.encode(PlacementRequest(location))
    path = f"{coordinator.rstrip('/')}/users/{quote(user, safe='')}/placement"
    try:
        async with httpx.AsyncClient(timeout=timeout_s, trust_env=False, verify=tls or _trusted(path)) as http:
            answer = await http.post(path, content=body, headers={**headers, "Content-Type": "application/json"})
    except (*UNANSWERED, httpx.InvalidURL) as error:
        raise Unavailable(f"no coordinator answers at {coordinator} ({str(error) or type(error).__name__})") from None
    return _read(answer, coordinator)


def _trusted(url: str) -> ssl.SSLContext | bool:
    """The public authorities for https; nobody is to be trusted over plain HTTP, where no certificate comes."""
    return _public_authorities() if url.lower().startswith("https:") else False


@cache
def _public_authorities() -> ssl.SSLContext:
    """Made once: reading them takes more than 20 ms of CPU, more than all else of a placement."""
    return httpx.create_ssl_context(trust_env=False)


def _read(answer: httpx.Response, coordinator: str) -> Placement:
    if answer.status_code in _OF_THE_TOKEN:
        raise Unauthenticated(_detail(answer, coordinator))
    if answer.is_client_error and answer.status_code not in _PASSING:
        raise PlacementRefused(_detail(answer, coordinator))
    if not answer.is_success:
        raise Unavailable(_detail(answer, coordinator))
    try:
        return msgspec.json.decode(answer.content, type=Placement)
    except msgspec.DecodeError as problem:
        raise Unavailable(f"what answers at {coordinator} is not a coordinator: {problem}") from None


def _detail(answer: httpx.Response, coordinator: str) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the coordinator at {coordinator} answered {answer.status_code}"
