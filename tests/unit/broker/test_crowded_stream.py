"""Subscriptions of one session to one stream come and go while it flows: each gets everything from its beginning."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from broker_world import World, place, run, token_of, world
from tocsin.client import Notification, Session, Subscription, connect, topic

PUBLISHED, ROUNDS = 400, 40


async def publish(w: World, rng: Random) -> None:
    for number in range(1, PUBLISHED + 1):
        w.topics.put("news", b"%d" % number)
        await asyncio.sleep(rng.choice([0.0, 0.0003, 0.002]))


async def collect(subscription: Subscription, through: str) -> list[str]:
    """What comes up to ``through``, by position; anything but a notification fails."""
    got: list[str] = []
    while not got or got[-1] < through:
        item = await anext(subscription)
        assert isinstance(item, Notification), item
        got.append(item.through)
    return got


async def come_and_go(session: Session, w: World, rng: Random) -> None:
    """Subscribe, from now or from an earlier position, read a little, and end it or leave it to be read to its end."""
    for number in range(ROUNDS):
        stands = w.hub["topic:news"].position
        start = place(rng.randint(0, int(stands))) if rng.random() < 0.6 else None
        subscription = await session.subscribe(topic("news"), id=f"s{number}", position=start)
        assert subscription.standing is not None
        begins, wanted = int(start or subscription.standing.position), rng.randint(1, 20)
        through = min(PUBLISHED, begins + wanted)
        if begins < through:
            got = await collect(subscription, place(through))
            assert got == [place(at) for at in range(begins + 1, through + 1)]
        if rng.random() < 0.7:
            await subscription.unsubscribe()


@pytest.mark.parametrize("tick", [0.0, 0.002, 0.02])
@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
def test_none_of_them_takes_anything_from_another(tick: float, cache_bytes: int) -> None:
    rng = Random(f"{tick} {cache_bytes}")

    async def scenario() -> None:
        async with (
            world(tick=tick, cache_bytes=cache_bytes, max_messages_per_s=100_000) as w,
            connect(broker=w.server.url, token=token_of("ann")) as session,
        ):
            w.topics.page_items = 10
            first = await session.subscribe(topic("news"), id="first")
            reading = asyncio.create_task(collect(first, place(PUBLISHED)))
            publishing = asyncio.create_task(publish(w, rng))
            await come_and_go(session, w, rng)
            await publishing
            assert await reading == [place(at) for at in range(1, PUBLISHED + 1)]

    run(scenario)
