"""Streams' pasts that are read together: each gets its own, and none waits for another's fault."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from msgspec.structs import replace

from support.memory_cluster import CHANNEL
from support.results_cluster import BROKER, ResultsCluster, Way, token
from tocsin.broker.upstream.cluster import ClusterClient, ResultPage, Span
from tocsin.broker.upstream.replaying import BULK, Replaying
from tocsin.datacluster.api import ApiLimits
from tocsin.datacluster.service import Wanted
from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.model.position import START, Position
from tocsin.tokens import LOCAL_ADMIN


class CountedWay(Way):
    """Keeps how many spans each request asked for; answers when ``open`` is set."""

    def __init__(self, cluster: ResultsCluster, limits: ApiLimits) -> None:
        super().__init__(cluster, limits)
        self.open = asyncio.Event()
        self.open.set()
        self.asked: list[int] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/results":
            self.asked.append(len(json.loads(request.content)["spans"]))
            await self.open.wait()
        return await super().handle_async_request(request)


class World:
    def __init__(self, limits: ApiLimits) -> None:
        self.cluster = ResultsCluster()
        (made,) = self.cluster.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "mine")], LOCAL_ADMIN)
        self.backend = made.backend
        for number in range(3):
            self.cluster.publish("fire", b"%d" % number)
        self.positions = [result.position for _, result in self.cluster.results]
        self.way = CountedWay(self.cluster, limits)
        self.client = ClusterClient("http://cluster", token, 5.0, self.way)
        self.replaying = Replaying(self.client, 10)

    def span(self, first: int = 0, last: int = 2, channel: str = CHANNEL) -> Span:
        """The results from one number to another."""
        after = self.positions[first - 1] if first else START
        return Span(channel, self.backend, str(after), str(self.positions[last]))

    def many(self, wanted: int) -> list[Span]:
        """Different spans with the first two results."""
        return [replace(self.span(0, 1), after=str(Position(0, row))) for row in range(1, wanted + 1)]

    async def payloads(self, span: Span) -> list[bytes]:
        page = await self.replaying.page(span)
        return [bytes(result.payload) for result in page.results]


@asynccontextmanager
async def world(limits: ApiLimits | None = None) -> AsyncIterator[World]:
    made = World(limits or ApiLimits())
    try:
        yield made
    finally:
        await made.replaying.stop()
        await made.client.close()


def test_what_is_asked_in_one_step_goes_together_and_each_gets_its_own() -> None:
    async def story() -> None:
        async with world() as w:
            found = await asyncio.gather(*(w.payloads(w.span(n, n)) for n in range(3)), w.payloads(w.span()))
            assert found == [[b"0"], [b"1"], [b"2"], [b"0", b"1", b"2"]]
            assert w.way.asked == [4]

    asyncio.run(story())


def test_what_is_asked_meanwhile_goes_with_the_next_request() -> None:
    async def story() -> None:
        async with world() as w:
            w.way.open.clear()
            first = asyncio.ensure_future(w.payloads(w.span(0, 0)))
            while not w.way.asked:
                await asyncio.sleep(0.001)
            others = asyncio.gather(*(w.payloads(span) for span in w.many(BULK + 1)))
            await asyncio.sleep(0)
            w.way.open.set()
            assert await first == [b"0"]
            assert set(map(tuple, await others)) == {(b"0", b"1")}
            assert w.way.asked == [1, BULK, 1]

    asyncio.run(story())


def test_who_asks_for_the_same_gets_the_same_page() -> None:
    async def story() -> None:
        async with world() as w:
            found = await asyncio.gather(*(w.replaying.page(w.span()) for _ in range(1000)))
            assert len({id(page) for page in found}) == 1
            assert w.way.asked == [1]
            assert (await w.replaying.page(w.span())) is not found[0]  # what is over is asked for anew

    asyncio.run(story())


def test_a_bad_one_fails_alone() -> None:
    async def story() -> None:
        async with world() as w:
            nonsense = Span(CHANNEL, w.backend, "soon", "later")
            asked = (w.span(), w.span(channel="Nobody"), nonsense, w.span(1, 1))
            found = await asyncio.gather(*map(w.replaying.page, asked), return_exceptions=True)
            kinds = (ResultPage, NotFound, BadArgument, ResultPage)
            assert [isinstance(one, kind) for one, kind in zip(found, kinds, strict=True)] == [True] * 4
            assert w.way.asked == [4]

    asyncio.run(story())


def test_what_is_too_much_for_one_answer_is_asked_again() -> None:
    async def story() -> None:
        async with world(ApiLimits(page_bytes=1)) as w:
            assert await asyncio.gather(*(w.payloads(w.span(n, n)) for n in range(3))) == [[b"0"], [b"1"], [b"2"]]
            assert w.way.asked == [3, 2, 1]

    asyncio.run(story())


def test_while_the_cluster_is_away_everybody_is_told() -> None:
    async def story() -> None:
        async with world() as w:
            w.way.is_cut = True
            found = await asyncio.gather(*map(w.replaying.page, w.many(3)), return_exceptions=True)
            assert all(isinstance(one, Unavailable) for one in found)
            w.way.is_cut = False
            assert await w.payloads(w.span(2, 2)) == [b"2"]

    asyncio.run(story())


def test_one_who_goes_takes_nothing_from_the_others() -> None:
    async def story() -> None:
        async with world() as w:
            gone, same, other = (asyncio.ensure_future(w.payloads(w.span(n, n))) for n in (0, 0, 1))
            await asyncio.sleep(0)
            gone.cancel()
            assert await asyncio.gather(same, other) == [[b"0"], [b"1"]]

    asyncio.run(story())


def test_a_stop_fails_who_waits() -> None:
    async def story() -> None:
        async with world() as w:
            w.way.open.clear()
            waiting = asyncio.gather(*map(w.replaying.page, w.many(BULK + 1)), return_exceptions=True)
            while not w.way.asked:
                await asyncio.sleep(0.001)
            await w.replaying.stop()
            assert all(isinstance(one, TocsinError) for one in await waiting)

    asyncio.run(story())
