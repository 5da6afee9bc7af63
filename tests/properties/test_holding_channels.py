"""Channels that many hold, let go of and give up waiting for, at a cluster that is slow and sometimes cut off.

Whatever is held gets every result from where it began, once and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from support.slow_cluster import SlowCluster
from support.virtual_time import run_in_virtual_time
from tocsin.broker.entries import Entry
from tocsin.broker.holding import Holding
from tocsin.broker.hub import Hub
from tocsin.broker.metering import Meters
from tocsin.broker.stream import Stream
from tocsin.broker.upstream.channels import ChannelOptions, ChannelUpstream
from tocsin.errors import TocsinError
from tocsin.protocol.targets import ChannelTarget

KINDS = ("fire", "flood", "storm")
PEOPLE, BUSY_S, QUIET_S = 5, 8.0, 8.0


class Follower:
    """Who holds a stream: what it gets."""

    descriptor = None

    def __init__(self, stream: Stream) -> None:
        self.stream, self.began, self.got = stream, stream.position, list[str]()
        stream.join(self, stream.position)

    def push(self, entries: Sequence[Entry]) -> None:
        self.got += [entry.through for entry in entries]

    def rest(self, data: bytes) -> None:
        raise AssertionError("it has no socket")


class World:
    def __init__(self, seed: int, losses: float) -> None:
        random, loop = Random(seed), asyncio.get_running_loop()
        self.cluster = SlowCluster(random, KINDS, losses)
        self.hub = Hub(1_000_000, 0.0, Meters(1.0, 0.0), loop.time, loop.call_later)
        options = ChannelOptions("north", 1.0, random.choice((3, 100)), 0.5, 1e9, 0.01, 0.1, random.choice((2, 100)))
        self.upstream = ChannelUpstream(self.cluster, self.hub, options)
        self.holding = Holding(self.hub, self.upstream, self.upstream, 8)

    async def person(self, random: Random) -> None:
        """Holds one thing after the other, sometimes losing patience before it stands."""
        while True:
            target = ChannelTarget("Alerts", (random.choice(KINDS[: random.choice((1, 3))]),))
            patience_s = random.choice((0.3 * random.random(), 1e9))
            with suppress(TimeoutError, TocsinError):
                async with asyncio.timeout(patience_s):
                    stream = await self.holding.hold(target)
                await asyncio.sleep(random.choice((0.0, 0.01, 0.5, 2.0)) * random.random())
                await self.holding.let_go(stream, target)
            await asyncio.sleep(random.choice((0.0, 0.01, 0.3)) * random.random())

    async def hold(self, kind: str) -> Follower:
        while True:
            with suppress(TocsinError):
                return Follower(await self.holding.hold(ChannelTarget("Alerts", (kind,))))
            await asyncio.sleep(0.1)


async def story(seed: int, losses: float) -> None:
    world = World(seed, losses)
    world.upstream.start("http://north/notify")
    executing = asyncio.create_task(world.cluster.execute())
    people = [asyncio.create_task(world.person(Random(f"{seed}/{n}"))) for n in range(PEOPLE)]
    await asyncio.sleep(BUSY_S)
    followers = [await world.hold(kind) for kind in KINDS]
    await asyncio.sleep(QUIET_S / 2)
    for person in people:
        person.cancel()
    world.cluster.losses = 0.0
    await asyncio.sleep(QUIET_S / 2)
    executing.cancel()
    await asyncio.sleep(QUIET_S)
    for backend, follower in enumerate(followers, 1):
        assert follower.got == world.cluster.results(backend, follower.began)
    await world.upstream.stop()


@pytest.mark.parametrize("losses", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(15))
def test_whatever_is_held_gets_everything(seed: int, losses: float) -> None:
    run_in_virtual_time(story(seed, losses))
