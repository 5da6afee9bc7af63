"""What users hold: held and durable, or neither."""

from __future__ import annotations

import asyncio

import pytest

from broker_world import MemoryDirectory, MemoryTopics, eventually, run, topic, world
from tocsin.broker.keeping import NotKept
from tocsin.protocol.messages import (
    Done,
    Failed,
    ListSubscriptions,
    Logout,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Wanted,
)
from tocsin.protocol.targets import Target, TopicTarget
from tocsin.tokens import Principal


def test_a_subscription_that_the_coordinator_refuses_is_let_go_of_again(monkeypatch):
    kept = MemoryDirectory.keep

    async def keep(self: MemoryDirectory, user: str, wanted: Wanted) -> None:
        if wanted.id.startswith("much") and len(self.kept) >= 2:
            raise NotKept("limit-exceeded", "too many")
        await kept(self, user, wanted)

    async def scenario():
        async with world() as w, w.client() as ann:
            monkeypatch.setattr(MemoryDirectory, "keep", keep)
            welcome = await ann.login("ann", topic("a"), topic("b"), topic("much"))
            assert [s.id for s in welcome.subscriptions] == ["a", "b"]
            assert [(r.id, r.code, r.detail) for r in welcome.refused] == [("much", "limit-exceeded", "too many")]
            refused = await ann.ask(Subscribe(2, "much too", TopicTarget("a")))
            assert refused.code == "limit-exceeded"
            assert list(w.core.users["ann"].subscriptions) == ["a", "b"]
            await eventually(lambda: w.topics.detached == ["much"])
            assert isinstance(await ann.ask(Subscribe(3, "a too", TopicTarget("a"))), Subscribed)

    run(scenario)


def test_what_is_over_the_limit_of_a_user_is_refused_before_anything_is_held_for_it():
    async def scenario():
        async with world(max_subscriptions=3) as w, w.client() as ann:
            welcome = await ann.login("ann", *(topic(f"t{n}") for n in range(8)))
            assert (len(welcome.subscriptions), {r.code for r in welcome.refused}) == (3, {"limit-exceeded"})
            assert len(w.topics.attached) == 3
            assert not w.topics.detached

    run(scenario)


def test_two_sessions_that_make_the_same_subscriptions_at_once_count_them_once():
    async def scenario():
        async with world(max_subscriptions=3) as w, w.client() as phone, w.client() as page:
            may_attach = w.topics.hold_attaching()
            logins = [asyncio.create_task(c.login("ann", *(topic(f"t{n}") for n in range(3)))) for c in (phone, page)]
            await eventually(lambda: "ann" in w.core.users and len(w.core.users["ann"].sessions) == 2)
            may_attach.set()
            for login in logins:
                assert not (await login).refused
            assert not w.core.users["ann"].making

    run(scenario)


def held_checks(topics: MemoryTopics, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Nobody learns whether it may follow something until the event is set."""
    may_check, check = asyncio.Event(), topics.check

    async def checked(target: Target, principal: Principal, position: str | None = None) -> None:
        await may_check.wait()
        await check(target, principal, position)

    monkeypatch.setattr(topics, "check", checked)
    return may_check


def test_two_targets_by_one_id_at_once_are_never_one_subscription():
    """The second session may not follow what the first does."""

    async def scenario():
        async with world() as w, w.client() as first, w.client() as second:
            await first.login("ann")
            await second.login("ann", capabilities=["topic:mine"])
            may_attach = w.topics.hold_attaching()
            await first.say(Subscribe(2, "x", TopicTarget("secret")))
            await eventually(lambda: w.core.users["ann"].making)
            await second.say(Subscribe(2, "x", TopicTarget("mine")))
            await eventually(lambda: w.core.users["ann"].making["x"].count == 2)
            may_attach.set()
            assert (await first.next()).subscription.stream == "topic:secret"
            assert (await second.next()).code == "already-exists"
            await eventually(lambda: w.topics.detached == ["mine"])
            assert set(w.hub.streams()) == {"topic:secret"}

    run(scenario)


def test_an_id_that_gets_another_target_while_one_is_checked_is_refused(monkeypatch):
    async def scenario():
        async with world() as w, w.client() as first, w.client() as second:
            await first.login("ann")
            await second.login("ann", capabilities=["topic:mine"])
            may_check = held_checks(w.topics, monkeypatch)
            await second.say(Subscribe(2, "x", TopicTarget("mine")))
            await asyncio.sleep(0.05)
            monkeypatch.undo()
            assert isinstance(await first.ask(Subscribe(2, "x", TopicTarget("secret"))), Subscribed)
            may_check.set()
            assert (await second.next()).code == "already-exists"

    run(scenario)


def test_what_is_unsubscribed_while_its_user_is_adopted_is_not_held():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.directory.kept = {("ann", name): topic(name) for name in "xy"}
            may_attach = w.topics.hold_attaching()
            adopted = asyncio.create_task(w.residents.adopt("ann", 1, [topic("x"), topic("y")]))
            await eventually(lambda: "ann" in w.core.users and len(w.core.users["ann"].making) == 2)
            await ann.login("ann")
            assert isinstance(await ann.ask(Unsubscribe(2, "x")), Done)
            may_attach.set()
            await adopted
            assert list(w.core.users["ann"].subscriptions) == ["y"]
            assert set(w.directory.kept) == {("ann", "y")}
            await eventually(lambda: w.topics.detached == ["x"])
            assert not w.core.users["ann"].making
            assert isinstance(await ann.ask(Subscribe(3, "x", TopicTarget("x"))), Subscribed)
            assert set(w.directory.kept) == {("ann", "x"), ("ann", "y")}

    run(scenario)


def test_who_asks_to_be_forgotten_while_it_is_adopted_is():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.directory.kept["ann", "x"] = topic("x")
            may_attach = w.topics.hold_attaching()
            adopted = asyncio.create_task(w.residents.adopt("ann", 1, [topic("x")]))
            await eventually(lambda: "ann" in w.core.users)
            await ann.login("ann")
            assert isinstance(await ann.ask(Logout(2, forget=True)), Done)
            may_attach.set()
            await adopted
            assert not w.directory.kept
            await eventually(lambda: w.topics.detached == ["x"])

    run(scenario)


def test_what_another_session_ends_while_it_is_made_is_made_for_nobody():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann")
            await page.login("ann")
            may_attach = w.topics.hold_attaching()
            await phone.say(Subscribe(2, "x", TopicTarget("x")))
            await eventually(lambda: w.core.users["ann"].making)
            assert isinstance(await page.ask(Unsubscribe(2, "x")), Done)
            may_attach.set()
            told = await phone.next()
            assert (type(told), told.code) == (Failed, "not-found")
            assert not w.directory.kept
            assert (await page.ask(ListSubscriptions(3))).subscriptions == []

    run(scenario)


def test_no_name_that_cannot_be_kept_reaches_the_coordinator():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann")
            assert (await ann.ask(Unsubscribe(2, "a\nb"))).code == "bad-argument"

    run(scenario)


def test_a_login_does_not_make_again_what_another_session_has_just_ended(monkeypatch):
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("x"), topic("y"))
            may_check = held_checks(w.topics, monkeypatch)
            login = asyncio.create_task(page.login("ann"))
            await eventually(lambda: len(w.core.users["ann"].sessions) == 2)
            assert isinstance(await phone.ask(Unsubscribe(2, "x")), Done)
            may_check.set()
            welcome = await login
            assert ([s.id for s in welcome.subscriptions], welcome.refused) == (["y"], [])
            assert set(w.directory.kept) == {("ann", "y")}
            assert list(w.core.users["ann"].subscriptions) == ["y"]

    run(scenario)


def test_a_login_that_names_what_another_session_has_just_ended_makes_it_again(monkeypatch):
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("x"))
            may_check = held_checks(w.topics, monkeypatch)
            login = asyncio.create_task(page.login("ann", topic("x")))
            await eventually(lambda: len(w.core.users["ann"].sessions) == 2)
            assert isinstance(await phone.ask(Unsubscribe(2, "x")), Done)
            may_check.set()
            assert [s.id for s in (await login).subscriptions] == ["x"]
            assert set(w.directory.kept) == {("ann", "x")}

    run(scenario)
