"""Asking an ASGI application without a socket, from plain test functions and from several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

App = Callable[..., Any]


class AppClient:
    """Like ``httpx.Client``; every request runs in one event loop behind the test."""

    def __init__(self, portal: BlockingPortal, client: httpx.AsyncClient) -> None:
        self._portal, self._client = portal, client

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._portal.call(lambda: self._client.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)


@contextmanager
def client_of(app: App, headers: dict[str, str] | None = None) -> Iterator[AppClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)
    with start_blocking_portal() as portal:
        yield AppClient(portal, client)
        portal.call(client.aclose)
