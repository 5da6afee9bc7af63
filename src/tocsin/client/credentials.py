"""The token that a client shows: given once, or asked for whenever one is needed."""

from __future__ import annotations

import asyncio
import inspect
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tocsin.errors import BadArgument, Unavailable

TokenSource = str | Callable[[], str | Awaitable[str]] | None


class Credentials:
    """``timeout_s`` is how long a function may take for a token."""

    def __init__(self, source: TokenSource, timeout_s: float) -> None:
        if not (source is None or isinstance(source, str) or callable(source)):
            raise BadArgument("token", "a text, or a function that gives one", source)
        self._source, self._timeout_s = source, timeout_s

    @property
    def can_renew(self) -> bool:
        return callable(self._source)

    async def token(self) -> str | None:
        if not callable(self._source):
            return self._source
        token = await self._asked(self._source)
        if not isinstance(token, str):
            raise BadArgument("token", "a function that gives a text", token)
        return token

    async def _asked(self, source: Callable[[], str | Awaitable[str]]) -> str:
        given = source()
        if not inspect.isawaitable(given):
            return given
        try:
            async with asyncio.timeout(self._timeout_s) as patience:
                return await given
        except TimeoutError:
            if not patience.expired():
                raise  # its own
            raise Unavailable(f"the function that gives tokens gave none within {self._timeout_s:g} s") from None

    def is_outdated(self, token: str | None) -> bool:
        """Whether another one was given since this was shown."""
        return not callable(self._source) and token != self._source

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


def nameless(token: str | None) -> str:
    """Why a token names nobody."""
    if not token:
        return "no token was given, and no user"
    if not claims(token):
        return "this is not a JSON Web Token (three parts with dots between them), and no user was given"
    return "the token does not name its user; give one with user="


def claims(token: str | None) -> dict[str, Any]:
    """A token's claims, unverified; none where it is not a JSON Web Token."""
    parts = (token or "").split(".")
    try:
        body = parts[1]
        found = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}
