"""What users hold: held and durable, or neither."""

from __future__ import annotations

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
