"""Subscriptions that end though their client did not end them."""

import asyncio

import pytest

from broker_world import closed, eventually, place, run, token_of, topic, world
from tocsin.broker.upstream.cluster import ClusterRefused
from tocsin.errors import BadArgument, NotFound, TocsinError, Unavailable
from tocsin.protocol.codes import BAD_TOKEN
from tocsin.protocol.messages import (
    Done,
    Ended,
    Failed,
    ListSubscriptions,
    Notification,
    Refresh,
    Subscribe,
    Subscribed,
    Subscriptions,
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


def test_a_refresh_that_cannot_be_checked_ends_what_is_refused_and_prolongs_nothing(monkeypatch):
    async def scenario():
        async with world(idle_timeout=10_000.0) as w, w.client() as ann:
            await ann.login("ann", topic("pinned"), topic("secret"), topic("sport"))
            check = w.topics.check

            async def checked(target, principal, position=None):
                if target.name == "pinned":
                    raise Unavailable("the data cluster does not answer")
                await check(target, principal, position)

            monkeypatch.setattr(w.topics, "check", checked)
            newer = token_of("ann", ["topic:pinned", "topic:sport"], 3600)
            told = await ann.ask(Refresh(2, newer))
            assert (type(told), told.id, told.code) == (Ended, "secret", "forbidden")
            assert (await ann.next()).code == "unavailable"
            w.topics.put("secret", b"1")
            w.topics.put("sport", b"2")
            assert (await ann.next()).stream == "topic:sport"
            monkeypatch.undo()
            assert isinstance(await ann.ask(Refresh(3, newer)), Done)
            w.core.wheel.advance(w.core.now() + 1200)  # past the end of the first token
            assert isinstance(await ann.ask(ListSubscriptions(4)), Subscriptions)

    run(scenario)


def test_a_session_whose_refresh_failed_ends_with_its_old_token(monkeypatch):
    async def scenario():
        async with world(idle_timeout=10_000.0) as w, w.client() as ann:
            await ann.login("ann", topic("pinned"))

            async def checked(target, principal, position=None):
                raise Unavailable("the data cluster does not answer")

            monkeypatch.setattr(w.topics, "check", checked)
            assert (await ann.ask(Refresh(2, token_of("ann", ["topic:*"], 3600)))).code == "unavailable"
            w.core.wheel.advance(w.core.now() + 1200)
            assert await closed(ann) == BAD_TOKEN.number

    run(scenario)


def test_a_subscription_that_ends_while_it_is_made_leaves_another_of_its_stream_alive(monkeypatch):
    """Its stream is followed anew from where it was to begin, for both."""

    async def scenario():
        async with world(cache_bytes=0) as w, w.client() as phone, w.client() as page:
            await page.login("ann")
            await phone.login("ann", topic("news"))
            for number in range(3):
                w.topics.put("news", b"%d" % number)
            assert [(await phone.next()).through for _ in range(3)] == [place(1), place(2), place(3)]
            may_replay, asked, replay = asyncio.Event(), asyncio.Event(), w.topics.replay

            async def replayed(stream, after, through):
                asked.set()
                await may_replay.wait()
                return await replay(stream, after, through)

            monkeypatch.setattr(w.topics, "replay", replayed)
            await phone.say(Subscribe(2, "early", TopicTarget("news"), place(1)))
            await asked.wait()
            assert isinstance(await page.ask(Unsubscribe(2, "early")), Done)
            may_replay.set()
            ended, failed = await phone.next(), await phone.next()
            assert (type(ended), ended.id, type(failed), failed.code) == (Ended, "early", Failed, "not-found")
            w.topics.put("news", b"3")
            assert [(await phone.next()).through for _ in range(3)] == [place(2), place(3), place(4)]

    run(scenario)
