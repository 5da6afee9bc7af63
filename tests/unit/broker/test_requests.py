"""Requests under way: bounded, and carried to their end where something hangs on it."""

import asyncio

from msgspec import Raw

from broker_world import eventually, run, topic, world
from tocsin.protocol.messages import ListSubscriptions, Publish, Subscribe, Unsubscribe
from tocsin.protocol.targets import TopicTarget


def test_requests_under_way_are_bounded_and_all_answered():
    async def scenario():
        async with world(max_requests=2, max_messages_per_s=1000.0) as w, w.client() as ann:
            await ann.login("ann")
            for i in range(40):
                await ann.say(Publish(i, "t", Raw(b"1")))
            assert [(await ann.next()).request for _ in range(40)] == list(range(40))

    run(scenario)


def test_nothing_is_read_while_too_many_requests_wait_for_their_turn():
    async def scenario():
        async with world(max_requests=4) as w, w.client() as ann:
            await ann.login("ann")
            (session,) = w.core.users["ann"].sessions
            go_on = w.topics.hold_attaching()
            await ann.say(Subscribe(2, "news", TopicTarget("news")))
            for i in range(3, 9):
                await ann.say(ListSubscriptions(i))
            await eventually(lambda: not session.outlet.transport.is_reading())
            go_on.set()
            assert [(await ann.next()).request for _ in range(7)] == list(range(2, 9))
            assert session.outlet.transport.is_reading()

    run(scenario)


def test_an_unsubscription_is_carried_out_though_its_client_does_not_wait_for_it():
    async def scenario():
        async with world() as w:
            go_on = asyncio.Event()
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
                w.directory.may_drop = go_on
                await ann.say(Unsubscribe(2, "news"))
                await eventually(lambda: not w.core.users["ann"].subscriptions)
            await eventually(lambda: not w.directory.online)
            go_on.set()
            await eventually(lambda: not w.directory.kept)
            await eventually(lambda: w.topics.detached == ["news"])
            assert not w.hub.streams()

    run(scenario)
