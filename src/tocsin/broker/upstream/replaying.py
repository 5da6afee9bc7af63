"""Reading streams' past at the data cluster, many in a request.

When a broker dies or everybody is shuffled, each who comes has several streams to read the past of, most of which
have nothing new: asked for one by one, those requests were what a migration waited for. What is asked for while a
request is under way goes with the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.cluster import ClusterClient, ResultPage, Span
from tocsin.errors import TocsinError, Unavailable

BULK = 100  # spans in one request


@dataclass(slots=True)
class _Wish:
    span: Span
    page: asyncio.Future[ResultPage]


class Replaying:
    """``page_rows`` is the most that a page has."""

    def __init__(self, cluster: ClusterClient, page_rows: int) -> None:
        self._cluster, self._page_rows = cluster, page_rows
        self._wishes: list[_Wish] = []
        self._is_asking = False
        self._tasks = Tasks("replaying")

    async def page(self, span: Span) -> ResultPage:
        """The first page of ``span``; Unavailable where the cluster cannot be asked now."""
        wish = _Wish(span, asyncio.get_running_loop().create_future())
        self._wishes.append(wish)
        if not self._is_asking:
            self._is_asking = True
            self._tasks.spawn(self._fulfil())
        return await wish.page

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _fulfil(self) -> None:
        """One request after the other until nothing is wished for."""
        now: list[_Wish] = []
        try:
            await asyncio.sleep(0)  # what comes in the same step goes together
            while now := self._take():
                await self._ask(now)
        finally:
            self._is_asking = False
            _fail([*now, *self._wishes], Unavailable("the broker stopped reading at the data cluster"))

    def _take(self) -> list[_Wish]:
        waiting = [wish for wish in self._wishes if not wish.page.done()]  # but for those whose asker has gone
        now, self._wishes = waiting[:BULK], waiting[BULK:]
        return now

    async def _ask(self, wishes: Sequence[_Wish]) -> None:
        try:
            found = await self._cluster.replay([wish.span for wish in wishes], self._page_rows)
        except Exception as problem:  # whatever it is, it is the askers' to handle
            _fail(wishes, problem)
            return
        for wish, page in zip(wishes, found, strict=False):
            if isinstance(page, TocsinError):
                _fail([wish], page)
            elif not wish.page.done():
                wish.page.set_result(page)
        self._wishes[:0] = wishes[len(found) :]  # what was too much for one answer


def _fail(wishes: Iterable[_Wish], problem: Exception) -> None:
    for wish in wishes:
        if not wish.page.done():
            wish.page.set_exception(problem)
