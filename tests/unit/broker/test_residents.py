"""What the coordinator says of a user, against what is held here: the newer word counts, whoever said it."""

from __future__ import annotations

import asyncio

import pytest

from broker_world import eventually, run, topic, world
from tocsin.errors import Unavailable
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import (
    Done,
    Ended,
    ListSubscriptions,
    Move,
    Ping,
    Pong,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
)
from tocsin.protocol.targets import TopicTarget


def test_what_was_ended_elsewhere_is_let_go_of_and_the_user_is_told():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("x"), topic("y"))
            del w.directory.kept["ann", "x"]
            await w.residents.adopt("ann", 1, [topic("y")])
            told = await ann.next()
            assert (type(told), told.id, told.code) == (Ended, "x", "unsubscribed")
            assert list(w.core.users["ann"].subscriptions) == ["y"]
            assert w.topics.detached == ["x"]
            assert w.directory.asked == [("ann", ("x",))]

    run(scenario)


def test_nothing_is_asked_about_what_the_coordinator_names():
    async def scenario():
        async with world() as w, w.client() as ann:
            await w.residents.adopt("ann", 1, [topic("x")])
            await ann.login("ann", topic("x"), topic("y"))
            await w.residents.adopt("ann", 2, [topic("x"), topic("y")])
            assert w.directory.asked == []

    run(scenario)


def test_what_is_newer_than_the_word_of_the_coordinator_stays():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("x"))
            await w.residents.adopt("ann", 1, [])
            assert isinstance(await ann.ask(Ping(2)), Pong)
            assert [one.id for one in w.residents.subscriptions("ann")] == ["x"]
            assert w.core.users["ann"].subscriptions["x"].is_kept

    run(scenario)


def test_what_is_asked_for_while_it_is_found_to_have_ended_is_durable_again():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("x"))
            await page.login("ann")
            del w.directory.kept["ann", "x"]
            w.directory.may_answer = asyncio.Event()
            adopted = asyncio.create_task(w.residents.adopt("ann", 1, []))
            await eventually(lambda: w.directory.asked)
            await page.say(Subscribe(2, "x", TopicTarget("x")))
            await eventually(lambda: w.core.users["ann"].subscriptions["x"].keeping)
            w.directory.may_answer.set()
            await adopted
            assert isinstance(await page.next(), Subscribed)
            assert isinstance(await phone.ask(Ping(3)), Pong)
            assert list(w.core.users["ann"].subscriptions) == ["x"]
            assert set(w.directory.kept) == {("ann", "x")}

    run(scenario)


def test_an_adoption_holds_what_it_names_though_nobody_can_say_what_has_ended():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("x"))
            del w.directory.kept["ann", "x"]
            w.directory.is_away = True
            with pytest.raises(Unavailable):
                await w.residents.adopt("ann", 1, [topic("y")])
            assert set(w.core.users["ann"].subscriptions) == {"x", "y"}
            w.directory.is_away = False
            await w.residents.adopt("ann", 1, [topic("y")])
            assert set(w.core.users["ann"].subscriptions) == {"y"}

    run(scenario)


def test_an_id_that_was_ended_and_used_for_another_target_elsewhere_is_that_one_here():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("old", "x"))
            w.directory.kept["ann", "x"] = topic("new", "x")
            await w.residents.adopt("ann", 1, [topic("new", "x")])
            assert isinstance(await ann.next(), Ended)
            assert [one.target.name for one in w.residents.subscriptions("ann")] == ["new"]

    run(scenario)


def test_what_was_ended_here_and_is_held_again_by_an_older_word_is_durable_when_it_is_asked_for():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as page:
            await ann.login("ann", topic("x"))
            assert isinstance(await ann.ask(Unsubscribe(2, "x")), Done)
            await w.residents.adopt("ann", 1, [topic("x")])
            await page.login("ann")
            assert not w.directory.kept, "a login that does not name it does not ask for it"
            assert isinstance(await ann.ask(Subscribe(3, "x", TopicTarget("x"))), Subscribed)
            assert set(w.directory.kept) == {("ann", "x")}
            await w.residents.adopt("ann", 1, [])
            assert [s.id for s in (await ann.ask(ListSubscriptions(4))).subscriptions] == ["x"]

    run(scenario)


B = BrokerInfo("b", "http://b")


def test_who_comes_to_the_source_of_its_move_is_told_to_go_when_it_was_welcomed():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page, w.client() as late:
            await phone.login("ann")
            may_attach = w.topics.hold_attaching()
            login = asyncio.create_task(page.login("ann", topic("x")))
            await eventually(lambda: len(w.core.users["ann"].sessions) == 2)
            sending = asyncio.create_task(w.residents.send("ann", 2, B, "ticket"))
            assert isinstance(await phone.next(), Move)
            may_attach.set()
            assert isinstance(await login, Welcome)
            assert isinstance(await page.next(), Move)
            assert isinstance(await late.login("ann"), Welcome)
            assert isinstance(await late.next(), Move)
            for client in (phone, page):
                assert isinstance(await client.ask(Ping(2)), Pong), "once"
                await client.socket.close()
            assert not sending.done()
            await late.socket.close()
            await sending

    run(scenario)


def test_nobody_is_waited_for_or_told_to_go_when_the_move_is_void():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as page:
            await ann.login("ann")
            sending = [asyncio.create_task(w.residents.send("ann", 2, B, "ticket")) for _ in range(2)]
            assert [type(await ann.next()) for _ in sending] == [Move, Move]
            await w.residents.adopt("ann", 3, [])
            await asyncio.gather(*sending)
            assert isinstance(await page.login("ann"), Welcome)
            assert isinstance(await page.ask(Ping(2)), Pong)

    run(scenario)
