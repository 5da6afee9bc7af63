"""Senders that are no longer answered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tocsin.chaos.journal import Journal
from tocsin.chaos.traffic import Traffic
from tocsin.errors import Unavailable


class Link:
    """A person's connection, with or without answers."""

    name = "publisher"

    def __init__(self, is_answered: bool) -> None:
        self.session = self
        self._is_answered = is_answered

    async def publish(self, topic: str, value: Any) -> str:
        return self._answer("0001")

    async def records(self, dataset: str, rows: list[Any]) -> tuple[int, int]:
        return self._answer((1, 0))

    def _answer(self, answer: Any) -> Any:
        if not self._is_answered:
            raise Unavailable("the broker does not answer")
        return answer


class Servers:
    """A world whose cluster always answers, and whose broker does unless its topics are ``silent``."""

    url = "http://cluster"

    def __init__(self, is_silent: bool) -> None:
        self.host = self
        self.http = httpx.AsyncClient(transport=httpx.MockTransport(self._reply))
        self._is_silent = is_silent

    def token(self, *_: object) -> str:
        return "token"

    def running(self) -> list[str]:
        return ["b1"]

    def broker_url(self, name: str) -> str:
        return f"http://{name}"

    def _reply(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "b1" and self._is_silent:
            return httpx.Response(503, text="not now")
        return httpx.Response(200, json={"position": "0001"})


@pytest.mark.parametrize("silent", [None, "walker", "publisher", "http"])
def test_a_sender_of_whom_nothing_is_acknowledged_is_found(tmp_path: Path, silent: str | None) -> None:
    async def story() -> list[str]:
        world: Any = Servers(silent == "http")
        traffic = Traffic(world, "Reports", ["t"], ["k"], Random(1), Journal(tmp_path / "journal"))
        publisher, walker = (Link(silent != name) for name in ("publisher", "walker"))
        traffic.start(publisher, walker)  # type: ignore[arg-type]
        found = await traffic.unheard(2.0 if silent else 20.0)
        await traffic.stop()
        return found

    assert asyncio.run(story()) == ([silent] if silent else [])
