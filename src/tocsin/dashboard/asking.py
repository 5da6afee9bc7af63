"""The token that the dashboard itself shows: it may read, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Generator

import httpx

from tocsin.tokens import mint

_TTL_S = 3600.0


class AsReader(httpx.Auth):
    """Adds a token made from the system's secret, and makes another in time."""

    def __init__(self, secret: bytes) -> None:
        self._secret, self._token, self._until = secret, "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if time.time() >= self._until:
            self._token, self._until = mint(self._secret, "dashboard", ["read"], _TTL_S), time.time() + _TTL_S / 2
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request
