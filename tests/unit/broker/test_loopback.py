"""The whole broker over real sockets, with the ``websockets`` client at the other end."""

import asyncio

import pytest
from broker_world import token_of, topic, world
from msgspec import Raw
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tocsin.protocol.messages import (
    Login,
    Notification,
    Publish,
    Published,
    Subscribed,
    Subscribe,
    Welcome,
)
from tocsin.protocol.targets import TopicTarget


def run(scenario):
    """Run a scenario under uvloop, as the broker does."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(scenario(), 20))


def test_what_is_published_reaches_who_subscribed():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            assert isinstance(await ann.login("ann"), Welcome)
            assert isinstance(await bob.login("bob"), Welcome)
            answer = await ann.ask(Subscribe(2, "s", TopicTarget("news")))
            assert isinstance(answer, Subscribed)
            assert isinstance(await bob.ask(Publish(3, "news", Raw(b'{"a":1}'))), Published)
            got = await ann.next()
            assert (got.stream, got.after, got.through, bytes(got.payload)) == (
                "topic:news",
                "0000",
                "0001",
                b'{"a":1}',
            )

    run(scenario)
