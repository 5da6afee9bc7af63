"""Reading streams' past at the data cluster, many in a request.

When a broker dies or everybody is shuffled, each who comes has several streams to read the past of, most of which
have nothing new: asked for one by one, those requests were what a migration waited for. What is asked for while a
request is under way goes with the next one, and who asks for the same gets the same page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.cluster import ClusterClient, ResultPage, Span
from tocsin.errors import Unavailable

BULK = 100  # spans in one request

Wish = asyncio.Future[ResultPage]


class Replaying:
    """``page_rows`` is the most that a page has."""

    def __init__(self, cluster: ClusterClient, page_rows: int) -> None:
        self._cluster, self._page_rows = cluster, page_rows
        self._wishes: dict[Span, Wish] = {}  # in the order in which they came, those under way first
        self._is_asking = False
        self._tasks = Tasks("replaying")

    async def page(self, span: Span) -> ResultPage:
        """The first page of ``span``; Unavailable where the cluster cannot be asked now."""
        wish = self._wishes.get(span)
        if wish is None:
            wish = self._wishes[span] = asyncio.get_running_loop().create_future()
            wish.add_done_callback(lambda done: done.exception())  # whoever asked may have gone
        if not self._is_asking:
            self._is_asking = True
            self._tasks.spawn(self._fulfil())
        return await asyncio.shield(wish)

    async def stop(self) -> None:
        await self._tasks.stop()

    async def _fulfil(self) -> None:
        """One request after the other until nothing is wished for."""
        try:
            await asyncio.sleep(0)  # what comes in the same step goes together
            while self._wishes:
                await self._ask(list(islice(self._wishes, BULK)))
        finally:
            self._is_asking = False
            self._fail(list(self._wishes), Unavailable("the broker stopped reading at the data cluster"))

    async def _ask(self, spans: list[Span]) -> None:
        """Those for which one answer has no room stay, and go with the next request."""
        try:
            found = await self._cluster.replay(spans, self._page_rows)
        except Exception as problem:  # whatever it is, it is the askers' to handle
            self._fail(spans, problem)
            return
        for span, page in zip(spans, found, strict=False):
            if isinstance(page, Exception):
                self._fail([span], page)
            else:
                self._wishes.pop(span).set_result(page)

    def _fail(self, spans: Iterable[Span], problem: Exception) -> None:
        for span in spans:
            self._wishes.pop(span).set_exception(problem)
