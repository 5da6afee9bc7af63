"""The token that a client shows: given once, or asked for whenever one is needed."""

from __future__ import annotations

import inspect
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tocsin.errors import BadArgument

TokenSource = str | Callable[[], str | Awaitable[str]] | None


class Credentials:
    def __init__(self, source: TokenSource) -> None:
        if not (source is None or isinstance(source, str) or callable(source)):
            raise BadArgument("token", "a text, or a function that gives one", source)
        self._source = source

    @property
    def can_renew(self) -> bool:
        return callable(self._source)

    async def token(self) -> str | None:
        if not callable(self._source):
            return self._source
        given = self._source()
        token = await given if inspect.isawaitable(given) else given
        if not isinstance(token, str):
            raise BadArgument("token", "a function that gives a text", token)
        return token

    def replace(self, token: str) -> None:
        """Show ``token`` from now on, where it was a text and not a function."""
        if not callable(self._source):
            self._source = token


def lasts_s(token: str | None, now: float | None = None) -> float | None:
    """How long a token lasts from now; None where it does not say. Nothing is verified: that is the broker's part."""
    end = claims(token).get("exp")
    return end - (time.time() if now is None else now) if isinstance(end, int | float) else None


def subject(token: str | None) -> str | None:
    """Whom a token names."""
    name = claims(token).get("sub")
    return name if isinstance(name, str) else None


def claims(token: str | None) -> dict[str, Any]:
    """A token's claims, unverified; none where it is not a JSON Web Token."""
    parts = (token or "").split(".")
    try:
        body = parts[1]
        found = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}
