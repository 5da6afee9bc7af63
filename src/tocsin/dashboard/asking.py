"""A token for who asks longer than one is good for, made anew in time."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence

import httpx

from tocsin.tokens import mint

_TTL_S = 3600.0


class AsOneself(httpx.Auth):
    """Adds a token of ``subject`` made from the system's secret, that may do this and nothing else."""

    def __init__(self, secret: bytes, subject: str, capabilities: Sequence[str]) -> None:
        self._secret, self._subject, self._capabilities = secret, subject, capabilities
        self._token, self._until = "", 0.0

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if time.time() >= self._until:
            self._token = mint(self._secret, self._subject, self._capabilities, _TTL_S)
            self._until = time.time() + _TTL_S / 2
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request
