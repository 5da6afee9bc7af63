"""The coordinator over HTTP, as a broker uses it: each method one request. Unavailable while it is away."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from tocsin.errors import BadArgument, NotFound, Unavailable
from tocsin.protocol.coordination import (
    Instructions,
    Keep,
    KeepAnswer,
    Kept,
    Placement,
    PlacementRequest,
    Registered,
    Registration,
    Report,
    Reported,
)
from tocsin.protocol.messages import Wanted
from tocsin.unanswered import UNANSWERED

T = TypeVar("T")
LONGEST_DETAIL = 1_000


class CoordinatorClient:
    def __init__(
        self,
        url: str,
        broker: str,
        token: Callable[[], str | None],
        timeout_s: float,
        parallel: int,
        transport: httpx.AsyncBaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._broker, self._token, self._timeout_s = quote(broker, safe=""), token, timeout_s
        self._places = asyncio.Semaphore(parallel)
        self._http = httpx.AsyncClient(
            base_url=url, timeout=timeout_s, trust_env=False, transport=transport, verify=tls or True
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def register(self, registration: Registration) -> Registered:
        return _read(Registered, await self._ask("PUT", f"/brokers/{self._broker}", registration))

    async def report(self, report: Report) -> Reported:
        return _read(Reported, await self._ask("POST", f"/brokers/{self._broker}/report", report))

    async def instructions(self, incarnation: str, after: int, wait_s: float) -> Instructions:
        """What comes after a number; NotFound where the coordinator does not know this life of the broker."""
        path = f"/brokers/{self._broker}/instructions?incarnation={quote(incarnation)}&after={after}&wait_s={wait_s}"
        return _read(Instructions, await self._ask("GET", path, waits_s=wait_s))

    async def place(self, user: str) -> Placement:
        path = f"/users/{quote(user, safe='')}/placement"
        async with self._places:  # there may be thousands at once, and one that waits for its turn is not unanswered
            return _read(Placement, await self._ask("POST", path, PlacementRequest()))

    async def keep(self, kept: Sequence[Kept]) -> KeepAnswer:
        return _read(KeepAnswer, await self._ask("POST", "/subscriptions", Keep(kept)))

    async def subscriptions(self, user: str) -> Sequence[Wanted]:
        """What is kept for the user; NotFound where there is none."""
        async with self._places:
            return _read(_User, await self._ask("GET", f"/users/{quote(user, safe='')}")).subscriptions

    async def _ask(self, method: str, path: str, body: object = None, waits_s: float = 0.0) -> bytes:
        token = self._token()
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = await self._http.request(
                method, path, content=content, headers=headers, timeout=self._timeout_s + waits_s
            )
        except UNANSWERED as problem:
            raise Unavailable(f"the coordinator does not answer: {type(problem).__name__} {problem}".strip()) from None
        if answer.is_success:
            return answer.content
        if answer.status_code == 404:
            raise NotFound("resource of the coordinator", path.partition("?")[0])
        if answer.status_code in (400, 409, 413, 422):
            raise BadArgument("request", "what the coordinator takes", because=_detail(answer))
        raise Unavailable(f"the coordinator answers {answer.status_code}: {_detail(answer)}")


class _User(msgspec.Struct):
    """What is read here of the coordinator's view of a user."""

    subscriptions: list[Wanted]


class _Problem(msgspec.Struct):
    detail: str


def _detail(answer: httpx.Response) -> str:
    """The sentence of a problem; of anything else its beginning."""
    try:
        return msgspec.json.decode(answer.content, type=_Problem).detail[:LONGEST_DETAIL]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return answer.text[:200]


def _read(kind: type[T], body: bytes) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as problem:
        raise Unavailable(f"the coordinator answers in a way that is not understood: {problem}") from None
