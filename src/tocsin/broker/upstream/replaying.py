"""Reading streams' past at the data cluster, many in a request.

When a broker dies or everybody is shuffled, each who comes has several streams to read the past of, most of which
have nothing new: asked for one by one, those requests were what a migration waited for. Who asks for the same gets
the same page.
"""

from __future__ import annotations

import asyncio

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.cluster import ClusterClient, ResultPage, Span
from tocsin.broker.upstream.gathering import Gathering

BULK = 100  # spans in one request


class Replaying:
    """``page_rows`` is the most that a page has."""

    def __init__(self, cluster: ClusterClient, page_rows: int) -> None:
        self._tasks = Tasks("replaying")
        self._gathering: Gathering[Span, ResultPage] = Gathering(
            lambda spans: cluster.replay(spans, page_rows), BULK, self._tasks
        )
        self._under_way: dict[Span, asyncio.Task[ResultPage]] = {}

    async def page(self, span: Span) -> ResultPage:
        """The first page of ``span``; Unavailable where the cluster cannot be asked now."""
        asked = self._under_way.get(span)
        if asked is None:
            asked = self._under_way[span] = asyncio.get_running_loop().create_task(self._gathering.ask(span))
            asked.add_done_callback(lambda done: self._ended(span, done))
        return await asyncio.shield(asked)

    async def stop(self) -> None:
        await self._tasks.stop()

    def _ended(self, span: Span, done: asyncio.Task[ResultPage]) -> None:
        del self._under_way[span]
        if not done.cancelled():
            done.exception()  # looked at, for whoever asked may have gone
