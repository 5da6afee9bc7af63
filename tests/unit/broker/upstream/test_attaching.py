"""Subscriptions that are made and ended at once: what somebody waits for is never taken away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from support.delivered import Remembered
from support.memory_cluster import CHANNEL
from support.results_cluster import BROKER, ResultsCluster, Way, token
from tocsin.broker.upstream.attaching import Attaching
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.channels import ChannelOptions, ChannelUpstream
from tocsin.broker.upstream.cluster import ClusterClient
from tocsin.datacluster.service import Wanted
from tocsin.errors import Unavailable
from tocsin.protocol.targets import ChannelTarget
from tocsin.tokens import Principal

FIRE = ChannelTarget(CHANNEL, ("fire",))
ALSO_FIRE = ChannelTarget(CHANNEL, {"kind": "fire"})  # another id for the same stream


class SlowWay(Way):
    """Subscriptions are answered when ``answers`` is set, and removals arrive when ``removals`` is."""

    def __init__(self, cluster: ResultsCluster) -> None:
        super().__init__(cluster)
        self.answers, self.removals = asyncio.Event(), asyncio.Event()
        self.asked = self.removing = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/remove"):
            self.removing += 1
            await self.removals.wait()
            answer = await super().handle_async_request(request)
            self.removing -= 1
            return answer
        try:
            return await super().handle_async_request(request)
        finally:
            if (request.method, request.url.path) == ("POST", "/subscriptions"):
                self.asked += 1
                await self.answers.wait()


class LateWay(Way):
    """The first removal is given up by who waits for it, and carried out by ``arrive``."""

    late: httpx.Request | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/remove") and self.late is None:
            self.late = request
            raise httpx.ReadTimeout("given up")
        return await super().handle_async_request(request)

    async def arrive(self) -> bytes:
        assert self.late is not None
        return await (await super().handle_async_request(self.late)).aread()


class BrokenWay(Way):
    """Fails ``times`` requests in a way that no library announces."""

    times = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.times:
            self.times -= 1
            raise self.problem
        return await super().handle_async_request(request)

    problem: Exception = AttributeError("'NoneType' object has no attribute 'getpeername'")


class World:
    def __init__(self, cluster: ResultsCluster, orphan_s: float, may_drop: Callable[[], bool]) -> None:
        self.cluster, self.way, self.hub = cluster, SlowWay(cluster), Remembered()
        self.client = ClusterClient("http://cluster", token, 5.0, self.way)
        options = ChannelOptions(BROKER, 0.2, 3, 0.02, orphan_s, 0.005, 0.02, 100, may_drop)
        self.upstream = ChannelUpstream(self.client, self.hub, options)

    async def attach(self, target: ChannelTarget = FIRE) -> str:
        attached = await self.upstream.attach(target)
        self.hub.open(attached.stream, attached.position)
        return attached.stream

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not is_so():
                await asyncio.sleep(0.005)

    async def check_results_come(self, stream: str) -> None:
        """Once whatever was to be removed has been."""
        self.way.removals.set()
        await self.until(lambda: not self.way.removing)
        self.cluster.publish("fire", b"1")
        await self.until(lambda: [payload for _, payload in self.hub.items[stream]] == [b"1"])


@asynccontextmanager
async def world(
    cluster: ResultsCluster | None = None, orphan_s: float = 30.0, may_drop: Callable[[], bool] = lambda: True
) -> AsyncIterator[World]:
    made = World(cluster or ResultsCluster(), orphan_s, may_drop)
    made.upstream.start("http://north/notify")
    await made.until(lambda: made.upstream.is_ready)
    try:
        yield made
    finally:
        await made.upstream.stop()
        await made.client.close()


@pytest.mark.parametrize("loses", [0, 1])
def test_one_who_goes_takes_nothing_from_one_who_comes(loses: int) -> None:
    """The first one's request is under way when it goes; its answer comes, or is lost."""

    async def story() -> None:
        async with world() as w:
            w.way.loses = loses
            first = asyncio.create_task(w.attach())
            await w.until(lambda: w.way.asked == 1)
            first.cancel()
            second = asyncio.create_task(w.attach())
            await asyncio.gather(first, return_exceptions=True)
            w.way.answers.set()
            await w.check_results_come(await second)

    asyncio.run(story())


def test_what_everybody_left_is_ended() -> None:
    async def story() -> None:
        async with world() as w:
            first = asyncio.create_task(w.attach())
            await w.until(lambda: w.way.asked == 1)
            assert w.cluster.held
            first.cancel()
            w.way.answers.set()
            w.way.removals.set()
            await w.until(lambda: not w.cluster.held)

    asyncio.run(story())


@pytest.mark.parametrize("loses", [0, 1])
def test_what_an_earlier_life_left_is_not_ended_with_one_who_goes(loses: int) -> None:
    """Its answer comes, or is lost."""

    async def story() -> None:
        cluster = ResultsCluster()
        async with world(cluster) as before:
            before.way.answers.set()
            await before.attach()
        async with world(cluster) as w:
            w.way.loses = loses
            first = asyncio.create_task(w.attach())
            await w.until(lambda: w.way.asked == 1)
            if not loses:
                first.cancel()
            w.way.answers.set()
            w.way.removals.set()
            await asyncio.gather(first, return_exceptions=True)
            cluster.publish("fire", b"1")
            stream = await w.attach()
            await w.until(lambda: [payload for _, payload in w.hub.items[stream]] == [b"1"])

    asyncio.run(story())


def test_what_is_asked_for_just_now_is_no_orphan() -> None:
    async def story() -> None:
        cluster = ResultsCluster()
        async with world(cluster) as before:
            before.way.answers.set()
            await before.attach()
        due, looked = asyncio.Event(), asyncio.Event()

        def may_drop() -> bool:
            if due.is_set():
                looked.set()
            return due.is_set()

        async with world(cluster, 0.01, may_drop) as w:
            asked = asyncio.create_task(w.attach())
            await w.until(lambda: w.way.asked == 1)
            due.set()
            await looked.wait()
            await asyncio.sleep(0)
            w.way.answers.set()
            await w.check_results_come(await asked)

    asyncio.run(story())


def test_the_last_holder_of_a_stream_ends_no_subscription_that_is_asked_for_again() -> None:
    async def story() -> None:
        async with world() as w:
            w.way.answers.set()
            stream = await w.attach()
            await w.attach(ALSO_FIRE)
            await w.upstream.detach(FIRE)
            w.way.answers.clear()
            again = asyncio.create_task(w.attach())
            await w.until(lambda: w.way.asked == 3)
            w.hub.close(stream)
            await w.upstream.detach(ALSO_FIRE)
            w.way.answers.set()
            await w.check_results_come(await again)

    asyncio.run(story())


def test_a_removal_that_arrives_late_takes_nothing_that_was_made_since() -> None:
    async def story() -> None:
        cluster = ResultsCluster()
        way = LateWay(cluster)
        client = ClusterClient("http://cluster", token, 5.0, way)
        attaching = Attaching(client, BROKER, Backoff(0.005, 0.02))
        first = await attaching.make(CHANNEL, "x", ["fire"])
        attaching.end(["x"])
        with pytest.raises(Unavailable):  # what it waits for failed
            await attaching.make(CHANNEL, "x", ["fire"])
        again = await attaching.make(CHANNEL, "x", ["fire"])
        assert again.making > first.making
        assert await way.arrive() == b'{"removed":0}'
        assert "x" in cluster.held
        await attaching.stop()
        await client.close()

    asyncio.run(story())


def test_a_life_whose_clock_is_behind_ends_what_the_one_before_made() -> None:
    async def story() -> None:
        cluster = ResultsCluster()
        ahead = 2**62  # milliseconds
        cluster.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "x")], Principal(BROKER, ("admin",)), ahead)
        async with world(cluster, orphan_s=0.01) as w:
            w.way.removals.set()
            await w.until(lambda: not cluster.held)

    asyncio.run(story())


def test_what_another_owns_does_not_move_the_numbers_of_makings() -> None:
    async def story() -> None:
        cluster = ResultsCluster()
        cluster.subscribe(CHANNEL, BROKER, [Wanted(["fire"], "x")], Principal("eve", ("admin",)), 2**63 - 1)
        async with world(cluster) as w:
            w.way.answers.set()
            await w.check_results_come(await w.attach())

    asyncio.run(story())


@pytest.mark.parametrize("problem", [AttributeError("a socket was reset at once"), KeyError("nobody foresaw this")])
def test_whatever_a_request_raises_the_next_one_is_made(problem: Exception) -> None:
    async def story() -> None:
        cluster = ResultsCluster()
        way = BrokenWay(cluster)
        way.problem, way.times = problem, 2
        client = ClusterClient("http://cluster", token, 5.0, way)
        attaching = Attaching(client, BROKER, Backoff(0.005, 0.02))
        async with asyncio.timeout(20):
            with pytest.raises(Unavailable):  # and what may have been made is ended, which fails once, too
                await attaching.make(CHANNEL, "x", ["fire"])
            with pytest.raises(Unavailable):
                await attaching.make(CHANNEL, "x", ["fire"])
            assert (await attaching.make(CHANNEL, "x", ["fire"])).id == "x"
        await attaching.stop()
        await client.close()

    asyncio.run(story())


def test_a_cluster_that_is_away_keeps_nobody_waiting_however_often_it_is_asked() -> None:
    async def story() -> None:
        async with world() as w:
            w.way.answers.set()
            w.way.removals.set()
            w.way.is_cut = True
            async with asyncio.timeout(20):
                for _ in range(3):
                    with pytest.raises(Unavailable):
                        await w.attach()
                w.way.is_cut = False
                while True:
                    try:
                        stream = await w.attach()
                        break
                    except Unavailable:
                        await asyncio.sleep(0.005)
                w.cluster.publish("fire", b"1")
                await w.until(lambda: [payload for _, payload in w.hub.items[stream]] == [b"1"])

    asyncio.run(story())
