"""Subscriptions that end though their client did not end them."""

import pytest

from broker_world import eventually, place, run, token_of, topic, world
from tocsin.broker.upstream.cluster import ClusterRefused
from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.protocol.messages import (
    Done,
    Ended,
    ListSubscriptions,
    Notification,
    Refresh,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Wanted,
)
from tocsin.protocol.targets import ChannelTarget, TopicTarget


def test_when_a_stream_ends_everyone_is_told_after_what_came_before_and_nobody_holds_it():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            async with w.client() as eve:
                await eve.login("eve", topic("news"))
            await ann.login("ann", topic("news"), topic("news", id="again"), topic("sport"))
            await bob.login("bob", topic("news"))
            w.topics.put("news", b"1")
            w.hub.end("topic:news", "dropped", "it is no more")
            assert isinstance(await ann.next(), Notification)
            told = [await ann.next(), await ann.next()]
            assert [(type(t), t.id, t.code, t.detail) for t in told] == [
                (Ended, "news", "dropped", "it is no more"),
                (Ended, "again", "dropped", "it is no more"),
            ]
            assert isinstance(await bob.next(), Notification)
            assert isinstance(await bob.next(), Ended)
            assert set(w.hub.streams()) == {"topic:sport"}
            await eventually(lambda: set(w.directory.kept) == {("ann", "sport")})
            assert isinstance(await bob.ask(Subscribe(2, "news", TopicTarget("news"))), Subscribed)
            assert w.topics.attached == ["news", "sport", "news"]
            assert w.topics.detached == []
            w.topics.put("sport", b"2")
            assert (await ann.next()).stream == "topic:sport"

    run(scenario)


def test_what_one_session_unsubscribes_the_others_of_its_user_are_told():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("news"))
            await page.login("ann")
            assert isinstance(await phone.ask(Unsubscribe(2, "news")), Done)
            told = await page.next()
            assert (told.id, told.code) == ("news", "unsubscribed")

    run(scenario)


def test_a_refreshed_token_ends_what_it_does_not_allow_for_its_session_alone():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("news"), topic("sport"))
            await page.login("ann")
            told = await phone.ask(Refresh(2, token_of("ann", ["topic:sport"])))
            assert (type(told), told.id, told.code) == (Ended, "news", "forbidden")
            assert isinstance(await phone.next(), Done)
            w.topics.put("news", b"1")
            w.topics.put("sport", b"2")
            assert (await phone.next()).stream == "topic:sport"
            assert (await page.next()).through == place(1)
            assert {s.id for s in (await phone.ask(ListSubscriptions(3))).subscriptions} == {"news", "sport"}

    run(scenario)


def storms(id: str = "storms") -> Wanted:
    return Wanted(id, ChannelTarget("Storms", ("north",)))


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        pytest.param(NotFound("channel", "Storms"), "dropped", id="its channel was dropped"),
        pytest.param(ClusterRefused("bad-argument", "2 arguments, got 1"), "replaced", id="its parameters are others"),
    ],
)
def test_what_is_placed_here_and_can_never_be_held_again_ends_and_its_user_is_told(problem: TocsinError, code: str):
    async def scenario():
        async with world() as w, w.client() as ann:
            wanted = [storms(), topic("news")]
            for one in wanted:
                await w.directory.keep("ann", one)
            await ann.login("ann")
            w.topics.refused["Storms"] = problem
            await w.residents.adopt("ann", 2, wanted)
            told = await ann.next()
            assert (type(told), told.id, told.code) == (Ended, "storms", code)
            assert set(w.directory.kept) == {("ann", "news")}
            assert [one.id for one in w.residents.subscriptions("ann")] == ["news"]

    run(scenario)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        pytest.param(storms(), Unavailable("the data cluster does not answer"), id="nobody answers"),
        pytest.param(storms(), NotFound("broker", "b1"), id="the cluster does not know the broker"),
        pytest.param(storms(), ClusterRefused("error", "status 404"), id="somebody else answers"),
        pytest.param(topic("news"), BadArgument("topic", "what its owner takes"), id="the owner has too many topics"),
    ],
)
def test_what_may_be_held_later_is_not_ended_when_it_is_placed_here(wanted: Wanted, problem: TocsinError):
    async def scenario():
        async with world() as w:
            await w.directory.keep("ann", wanted)
            w.topics.refused[wanted.target.name] = problem
            with pytest.raises(type(problem)):
                await w.residents.adopt("ann", 2, [wanted])
            assert set(w.directory.kept) == {("ann", wanted.id)}
            del w.topics.refused[wanted.target.name]
            await w.residents.adopt("ann", 2, [wanted])
            assert [one.id for one in w.residents.subscriptions("ann")] == [wanted.id]

    run(scenario)
