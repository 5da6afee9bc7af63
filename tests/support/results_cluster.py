"""A data cluster of dictionaries that gives results as the real one does, behind its real HTTP interface.

A broker gets a result of a backend subscription if one of its subscriptions began before it. The way there can be
cut, before a request arrives or before its answer comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import httpx

from support.memory_cluster import CHANNEL, MemoryCluster
from tocsin.broker.upstream.cluster import capabilities
from tocsin.datacluster.api import ApiLimits, create_app
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.service import Answer, ChannelPage, GapView, ResultView, Subscribed, Wanted
from tocsin.errors import BadArgument
from tocsin.model.position import Position
from tocsin.tokens import Principal, mint, verify

SECRET = b"a secret of at least thirty-two bytes"
BROKER = "north"


class ResultsCluster(MemoryCluster):
    def __init__(self) -> None:
        super().__init__()
        self.since: dict[str, Position] = {}
        self.life, self.is_dropped = 1, False

    def drop(self) -> None:
        """DROP CHANNEL … CASCADE."""
        self.is_dropped, self.held, self.since, self.backends, self.results = True, {}, {}, {}, []

    def make_again(self) -> None:
        """CREATE CHANNEL, after a drop."""
        self.is_dropped, self.life = False, self.life + 1

    def execute(self, text: str, who: Principal, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        self._need(who, "broker", BROKER)
        assert text.startswith(f"CREATE OR REPLACE BROKER `{BROKER}` AT"), text
        return [Answer("done", "created")]

    def unsubscribe(self, ids: Sequence[str], who: Principal, making: int | None = None) -> int:
        for one in self._made_up_to(making, ids):
            self.since.pop(one, None)
        return super().unsubscribe(ids, who, making)

    def pull(
        self, broker: str, cursors: Mapping[str, Position], who: Principal, *, max_rows: int | None = None,
        max_bytes: int | None = None, wait_s: float = 0.0,
    ) -> list[ChannelPage]:  # fmt: skip
        self._need(who, "broker", broker)
        for channel in cursors:
            self._named("channel", channel, CHANNEL)
        cursor = cursors[CHANNEL]
        self._check(cursor)
        with self._news:
            self._news.wait_for(lambda: self._wanted(cursor) or cursor < self.oldest, min(wait_s, 0.05))
            return [self._cut(cursor, self._wanted(max(cursor, self.oldest)), max_rows or 1000, self._end())]

    def replay(
        self, channel: str, backend: int, after: Position, through: Position | None, limit: int, who: Principal
    ) -> ChannelPage:
        self._need(who, "read")
        self._named("channel", channel, CHANNEL)
        self._check(after)
        last = min(through or self._end(), self._end())
        found = [r for r in self._after(max(after, self.oldest)) if backend in r.backends and r.position <= last]
        return self._cut(after, found, limit, last)

    def _hold(self, wanted: Wanted, kind: str, broker: str, who: Principal, making: int) -> Subscribed:
        made = super()._hold(wanted, kind, broker, who, making)
        return replace(made, position=self.since.setdefault(made.id, made.position), life=self.life)

    def _named(self, kind: str, name: str, *known: str) -> None:
        super()._named(kind, name, *(() if kind == "channel" and self.is_dropped else known))

    def _check(self, position: Position) -> None:
        if position > self._end():
            raise BadArgument(CHANNEL, f"a position at or before {self._end()}", str(position))

    def _wanted(self, after: Position) -> list[ResultView]:
        def is_wanted(result: ResultView) -> bool:
            mine = ((self.held[one].backend, at) for one, at in self.since.items())
            return any(backend in result.backends and at < result.position for backend, at in mine)

        return [result for result in self._after(after) if is_wanted(result)]

    def _cut(self, after: Position, found: list[ResultView], limit: int, last: Position) -> ChannelPage:
        gap = GapView(after, self.oldest, None, "retention") if after < self.oldest else None
        chosen = found[:limit]
        through = chosen[-1].position if len(found) > limit else max(last, after, self.oldest)
        return ChannelPage(CHANNEL, after, through, tuple(chosen), len(found) <= limit, gap, self.life)


class Way(httpx.AsyncBaseTransport):
    """To the cluster: ``is_cut`` before it, or ``loses`` so many answers after the cluster has done what was asked."""

    def __init__(self, cluster: ResultsCluster, limits: ApiLimits | None = None) -> None:
        limits = limits or ApiLimits()
        app = create_app(cluster, verify=partial(verify, secret=SECRET), limits=limits, metrics=Metrics())
        self._inner = httpx.ASGITransport(app)
        self.is_cut, self.loses = False, 0
        self.requests: list[tuple[str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.method, request.url.path))
        if self.is_cut:
            raise httpx.ConnectError("cut")
        answer = await self._answer(request)
        if self.loses and "pull" not in request.url.path:
            self.loses -= 1
            raise httpx.ReadTimeout("lost")
        return answer

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        """As from another process: one who asked and is cancelled does not wait for what the cluster makes of it."""
        asked = asyncio.create_task(self._inner.handle_async_request(request))
        try:
            await asyncio.wait({asked})
        finally:
            asked.cancel()
        return asked.result()


def token(*granted: Any) -> str:
    return mint(SECRET, BROKER, granted or capabilities(BROKER), 3600)
