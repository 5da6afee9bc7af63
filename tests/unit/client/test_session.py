"""The asynchronous client at a real broker."""

from __future__ import annotations

import pytest

from broker_world import eventually, place, run, token_of, world
from tocsin.client import Notification, connect, topic
from tocsin.config import Client
from tocsin.errors import LimitExceeded


def test_what_is_due_at_once_is_done_on_uvloop_as_well() -> None:
    async def take() -> None:
        at_once = Client(ack_interval=1e-9)
        async with (
            world() as made,
            connect(broker=made.server.url, token=token_of("ann", ("topic:*",)), settings=at_once) as session,
        ):
            news = await session.subscribe(topic("news"), id="n")
            for number in range(1, 10):
                made.topics.put("news", b"%d" % number)
                item = await anext(news)
                assert isinstance(item, Notification)
                assert item.payload == number
            await eventually(lambda: ("ann", "n", place(9)) in made.directory.acks)

    run(take)


def test_a_publication_that_is_too_long_for_the_broker_leaves_the_session_as_it_is() -> None:
    async def publish() -> None:
        token = token_of("ann", ("topic:*", "publish:*"))
        async with world() as made, connect(broker=made.server.url, token=token) as session:
            with pytest.raises(LimitExceeded, match="bytes of a message: at most 256,000"):
                await session.publish("news", "x" * 300_000)
            assert await session.publish("news", "x" * 255_000)
            assert session.is_connected

    run(publish)
