"""Removing what dead brokers left at the data cluster, until it is done.

A broker may come back meanwhile and make its subscriptions again, under the same ids. So a removal and a
registration of one broker never run at once, and a registration ends a removal that waits for the cluster. A removal
names the latest making that it saw, so one that the cluster carries out late, when it was given up here, takes nothing
that the broker asked for since.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Protocol

import httpx
import msgspec

from tocsin.errors import Unavailable
from tocsin.unanswered import UNANSWERED

log = logging.getLogger(__name__)
_PAGE = 1000
_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class _Subscription(msgspec.Struct, frozen=True):
    id: str
    owner: str = ""
    making: int = 0


class _Subscriptions(msgspec.Struct, frozen=True):
    subscriptions: list[_Subscription]


class Cluster(Protocol):
    async def remove_some(self, broker: str) -> bool:
        """Remove some subscriptions of ``broker``; whether there may be more. Unavailable if that failed."""
        ...

    async def close(self) -> None: ...


class HttpCluster:
    """The data cluster over HTTP; ``token`` makes one of the broker that it is given."""

    def __init__(
        self, url: str, token: Callable[[str], str], timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._token = token
        self._http = httpx.AsyncClient(base_url=url, timeout=timeout_s, trust_env=False, verify=tls or True)

    async def remove_some(self, broker: str) -> bool:
        found = await self._ask(broker, "GET", "/subscriptions", params={"broker": broker, "limit": _PAGE})
        stood = _read(found) if found.status_code == 200 else []
        own = [one for one in stood if one.owner == broker]
        if own:
            removal = {"ids": [one.id for one in own], "making": max(one.making for one in own)}
            await self._ask(broker, "POST", "/subscriptions/remove", json=removal)
        if others := [one.id for one in stood if one.owner != broker]:  # their makings are numbers of their own
            await self._ask(broker, "POST", "/subscriptions/remove", json={"ids": others})
        return len(stood) == _PAGE

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, broker: str, method: str, path: str, **what: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self._token(broker)}"}
        try:
            answer = await self._http.request(method, path, headers=headers, **what)  # type: ignore[arg-type]
        except UNANSWERED as error:
            raise Unavailable(f"the data cluster does not answer: {type(error).__name__}") from None
        if not answer.is_success and answer.status_code != 404:  # a broker that the cluster never knew has nothing
            raise Unavailable(f"the data cluster answers {answer.status_code}")
        return answer


def _read(answer: httpx.Response) -> list[_Subscription]:
    try:
        return msgspec.json.decode(answer.content, type=_Subscriptions).subscriptions
    except msgspec.DecodeError as problem:
        raise Unavailable(f"the data cluster answers in a way that is not understood: {problem}") from None


class Detaching:
    def __init__(
        self, cluster: Cluster, is_dead: Callable[[str], bool], on_done: Callable[[str], Awaitable[None]]
    ) -> None:
        self._cluster, self._is_dead, self._on_done = cluster, is_dead, on_done
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def lock(self, broker: str) -> asyncio.Lock:
        """Held while ``broker`` registers, and while something of it is removed."""
        return self._locks[broker]

    def begin(self, broker: str) -> None:
        running = self._tasks.get(broker)
        if running is None or running.done():
            self._tasks[broker] = asyncio.create_task(self._run(broker))

    def give_up(self, broker: str) -> None:
        """The broker comes back, and whoever says so has its lock: what waits here is not for its next death."""
        running = self._tasks.pop(broker, None)
        if running is not None:
            running.cancel()

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._cluster.close()

    async def _run(self, broker: str) -> None:
        failures = 0
        while self._is_dead(broker):
            try:
                async with self.lock(broker):
                    if self._is_dead(broker) and not await self._cluster.remove_some(broker):
                        await self._on_done(broker)
                        return
                failures = 0
            except Unavailable as problem:
                if not failures:
                    log.warning("subscriptions of the dead broker %s are not removed yet: %s", broker, problem)
                await asyncio.sleep(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])
                failures += 1
