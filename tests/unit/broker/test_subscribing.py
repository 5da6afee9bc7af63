"""What users hold: held and durable, or neither."""

from __future__ import annotations

import asyncio

from broker_world import MemoryDirectory, eventually, run, topic, world
from tocsin.broker.keeping import NotKept
from tocsin.protocol.messages import Subscribe, Subscribed, Wanted
from tocsin.protocol.targets import TopicTarget


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
