"""The coordinator around its state: durability first, instructions in order, tickets, cleaning up."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from support.coordinators import MemoryStore, NoCluster, wanted
from tocsin.coordinator import detaching, events
from tocsin.coordinator.asking import is_refused
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator, ServiceOptions
from tocsin.coordinator.state import State
from tocsin.errors import NotFound, Unavailable
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import (
    Acknowledged,
    Adopt,
    Load,
    Outcome,
    Placement,
    PlacementRequest,
    Registration,
    Report,
    Reported,
    Send,
    Topology,
)
from tocsin.protocol.tickets import read_ticket

SECRET = b"a secret of at least thirty-two bytes"


def make(store: MemoryStore | None = None, **options: Any) -> Coordinator:
    state = State(Rules(), placement_policy("round_robin"), Random(0))
    return Coordinator(state, store or MemoryStore(), NoCluster(), secret=SECRET, options=ServiceOptions(**options))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def registration(name: str, incarnation: str = "1") -> Registration:
    return Registration(incarnation, f"http://{name}.invalid:1")


def report(*outcomes: Outcome, incarnation: str = "1") -> Report:
    return Report(incarnation, Load(), outcomes=outcomes)


def test_a_placement_comes_with_a_ticket_for_that_broker():
    async def story() -> None:
        service = make()
        await service.register("a", registration("a"))
        placement = await service.place("ann", PlacementRequest())
        ticket = read_ticket(placement.ticket, SECRET)
        assert (ticket.user, ticket.broker, ticket.version) == ("ann", "a", placement.version)
        assert placement.reason == "next in turn"
        assert read_ticket((await service.place("ann", PlacementRequest())).ticket, SECRET).number != ticket.number

    run(story())


def test_without_brokers_a_placement_is_not_possible():
    async def story() -> None:
        with pytest.raises(Unavailable, match="no broker lives"):
            await make().place("ann", PlacementRequest())

    run(story())


def test_instructions_are_given_again_until_the_broker_asks_after_them():
    async def story() -> None:
        service = make(page_instructions=2)
        await service.register("a", registration("a"))
        for user in ("ann", "bob"):
            await service.place(user, PlacementRequest())
        first = await service.instructions("a", "1", 0, 0)
        assert [type(one) for one in first] == [Topology, Adopt]
        assert await service.instructions("a", "1", 0, 0) == first
        [last] = await service.instructions("a", "1", first[-1].number, 0)
        assert isinstance(last, Adopt)
        assert await service.instructions("a", "1", last.number, 0) == []

    run(story())


def test_a_broker_that_waits_hears_at_once():
    async def story() -> None:
        service = make()
        await service.register("a", registration("a"))
        [topology] = await service.instructions("a", "1", 0, 0)
        waiting = asyncio.create_task(service.instructions("a", "1", topology.number, 15))
        await asyncio.sleep(0)
        await service.place("ann", PlacementRequest())
        assert [type(one) for one in await waiting] == [Adopt]

    run(story())


def test_who_waits_is_answered_when_the_coordinator_stops():
    async def story() -> None:
        service = make()
        await service.register("a", registration("a"))
        waiting = asyncio.create_task(service.instructions("a", "1", 2**60, 15))
        await asyncio.sleep(0)
        service.wake_all()
        assert await waiting == []

    run(story())


def test_an_old_life_of_a_broker_has_to_register():
    async def story() -> None:
        service = make()
        with pytest.raises(NotFound, match="registration of broker 'a'"):
            await service.instructions("a", "1", 0, 0)
        await service.register("a", registration("a"))
        waiting = asyncio.create_task(service.instructions("a", "1", 2**60, 15))
        await asyncio.sleep(0)
        await service.register("a", registration("a", "2"))
        with pytest.raises(NotFound):
            await waiting
        assert not (await service.report("a", report())).is_known

    run(story())


def test_a_send_carries_a_ticket_for_the_destination():
    async def story() -> None:
        service = make()
        for name in ("a", "b"):
            await service.register(name, registration(name))
        await service.place("ann", PlacementRequest())
        await service.handle(events.PlanProposed([events.WantedMove("ann", "b", "")], "a test"))
        adopt = (await service.instructions("b", "1", 0, 0))[-1]
        await service.report("b", report(Outcome(adopt.number, True)))
        send = (await service.instructions("a", "1", 0, 0))[-1]
        assert isinstance(send, Send)
        ticket = read_ticket(send.ticket, SECRET)
        assert (ticket.user, ticket.broker, ticket.version) == ("ann", "b", send.version)

    run(story())


def test_a_broker_that_does_not_take_its_instructions_has_to_register_again():
    async def story() -> None:
        service = make(max_instructions=5)
        await service.register("a", registration("a"))
        for n in range(6):
            await service.place(f"u{n}", PlacementRequest())
        await asyncio.sleep(0.01)
        assert not (await service.report("a", report())).is_known
        await service.register("a", registration("a"))
        assert len(await service.instructions("a", "1", 0, 0)) == 7, "a briefing is as long as it has to be"

    run(story())


def test_nothing_is_answered_that_is_not_durable():
    async def story() -> None:
        store, failures = MemoryStore(), []
        state = State(Rules(), placement_policy("round_robin"), Random(0))
        service = Coordinator(state, store, NoCluster(), secret=SECRET, on_failure=lambda: failures.append(1))
        await service.register("a", registration("a"))
        [topology] = await service.instructions("a", "1", 0, 0)
        store.fails = True
        with pytest.raises(Unavailable, match="could not be made durable"):
            await service.place("ann", PlacementRequest())
        assert await service.instructions("a", "1", topology.number, 0) == [], "nor is anyone told"
        store.fails = False
        with pytest.raises(Unavailable, match="could not be made durable"):
            await service.place("bob", PlacementRequest())
        assert failures == [1]
        assert make(store).state.world.users.names() == []

    run(story())


class Held(MemoryStore):
    """Commits wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()

    def save(self, changes: Any) -> None:
        assert self.go.wait(20)
        super().save(changes)


def test_a_placement_is_answered_as_it_was_decided_and_made_durable():
    async def story() -> None:
        store = Held()
        service = make(store)
        for name in ("a", "b"):
            await service.register(name, registration(name))
        store.go.clear()
        asked = asyncio.create_task(service.place("ann", PlacementRequest()))
        await asyncio.sleep(0)
        later = asyncio.create_task(service.handle(events.BrokerRemoved("a")))
        await asyncio.sleep(0)
        store.go.set()
        placement = await asked
        assert (placement.broker, placement.version) == ("a", 1), "what came later may not be durable yet"
        await later
        assert service.state.world.users["ann"].broker == "b"
        await service.stop()

    run(story())


async def asked_twice(*steps: Callable[[Coordinator], Coroutine[Any, Any, object]]) -> tuple[Held, list[asyncio.Task]]:
    """The last of ``steps`` twice while commits are held, when each had time to be answered; the others are durable."""
    store = Held()
    service = make(store)
    await service.register("a", registration("a"))
    for step in steps[:-1]:
        await step(service)
    store.go.clear()
    tasks = [asyncio.create_task(steps[-1](service)) for _ in range(2)]
    await asyncio.sleep(0.05)
    return store, tasks


def placed(service: Coordinator) -> Coroutine[Any, Any, object]:
    return service.place("ann", PlacementRequest())


def kept(service: Coordinator) -> Coroutine[Any, Any, object]:
    return service.handle(events.SubscriptionKept("ann", wanted("1"), "a"))


def acknowledged(service: Coordinator) -> Coroutine[Any, Any, object]:
    return service.report("a", Report("1", Load(), acknowledged=[Acknowledged("ann", "1", "05")]))


def removed(service: Coordinator) -> Coroutine[Any, Any, object]:
    return service.handle(events.UserRemoved("ann"))


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        pytest.param([placed], Placement, id="where a user is"),
        pytest.param([kept, acknowledged], Reported, id="what a broker told again"),
        pytest.param([placed, removed], NotFound, id="that there is no such user"),
    ],
)
def test_what_changes_nothing_is_answered_when_what_it_says_is_durable(steps: list[Any], answer: type[object]):
    async def story() -> None:
        store, tasks = await asked_twice(*steps)
        assert [task.done() for task in tasks] == [False, False]
        store.go.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert type(answers[-1]) is answer

    run(story())


def test_what_changes_nothing_is_not_answered_where_what_it_would_say_is_lost():
    async def story() -> None:
        store, tasks = await asked_twice(placed, removed)
        store.fails = True
        store.go.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in answers] == [Unavailable, Unavailable]

    run(story())


def test_a_report_that_tells_nothing_to_be_kept_waits_for_no_commit():
    async def story() -> None:
        store = Held()
        service = make(store)
        await service.register("a", registration("a"))
        store.go.clear()
        asked = asyncio.create_task(placed(service))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await service.report("a", report())
            await service.tick(0.25)
        assert not asked.done()
        store.go.set()
        await asked

    run(story())


def test_who_proposed_a_plan_hears_of_that_plan():
    async def story() -> None:
        service = make(Held())
        proposals = [service.propose([events.WantedMove(user, "a", "")], user) for user in ("ann", "bob", "eve")]
        plans = await asyncio.gather(*proposals)
        assert [service.state.world.plans[plan].cause for plan in plans] == ["ann", "bob", "eve"]

    run(story())


def test_many_events_share_a_commit():
    class Counting(MemoryStore):
        commits = 0

        def save(self, changes: Any) -> None:
            self.commits += 1
            super().save(changes)

    async def story() -> None:
        store = Counting()
        service = make(store)
        await service.register("a", registration("a"))
        before = store.commits
        kept = (events.SubscriptionKept(f"u{n}", wanted("1")) for n in range(100))
        await asyncio.gather(*(service.handle(one) for one in kept))
        assert store.commits - before <= 3
        assert len([kind for kind, _ in store.rows if kind == "user"]) == 100

    run(story())


def test_what_a_dead_broker_left_is_removed_before_it_may_come_back():
    class Slow(NoCluster):
        def __init__(self) -> None:
            super().__init__()
            self.begun, self.go = asyncio.Event(), asyncio.Event()

        async def remove_some(self, broker: str) -> bool:
            self.begun.set()
            await self.go.wait()
            return await super().remove_some(broker)

    async def story() -> None:
        cluster = Slow()
        state = State(Rules(), placement_policy("round_robin"), Random(0))
        service = Coordinator(state, MemoryStore(), cluster, secret=SECRET)
        assert not (await service.register("a", registration("a"))).was_given_up
        await service.handle(events.BrokerRemoved("a"))
        await cluster.begun.wait()
        returning = asyncio.create_task(service.register("a", registration("a")))
        await asyncio.sleep(0.01)
        assert not returning.done()
        cluster.go.set()
        assert (await returning).was_given_up
        assert cluster.asked == ["a"]
        await service.stop()

    run(story())


def test_removal_is_tried_until_it_is_done():
    class Away(NoCluster):
        async def remove_some(self, broker: str) -> bool:
            await super().remove_some(broker)
            if len(self.asked) == 1:
                raise Unavailable("the data cluster does not answer")
            return len(self.asked) == 2  # there is more

    async def story() -> None:
        cluster = Away()
        state = State(Rules(), placement_policy("round_robin"), Random(0))
        service = Coordinator(state, MemoryStore(), cluster, secret=SECRET)
        await service.register("a", registration("a"))
        await service.handle(events.BrokerRemoved("a"))
        while state.world.brokers["a"].is_attached:
            await asyncio.sleep(0.02)
        assert cluster.asked == ["a"] * 3
        await service.stop()

    run(story())


def test_a_removal_that_waits_ends_when_the_broker_comes_back(monkeypatch: pytest.MonkeyPatch):
    """The next death has its own: ann is at a alone, and nobody else could hold what it left."""
    monkeypatch.setattr(detaching, "_PAUSES_S", (0.01,))

    class Away(NoCluster):
        is_away = True

        async def remove_some(self, broker: str) -> bool:
            if self.is_away:
                raise Unavailable("the data cluster does not answer")
            return await super().remove_some(broker)

    async def story() -> None:
        cluster = Away()
        state = State(Rules(), placement_policy("round_robin"), Random(0))
        service = Coordinator(state, MemoryStore(), cluster, secret=SECRET)
        await service.register("a", registration("a"))
        await service.handle(events.BrokerRemoved("a"))
        await asyncio.sleep(0)
        await service.register("a", registration("a"))
        await service.place("ann", PlacementRequest())
        cluster.is_away = False
        await service.handle(events.BrokerRemoved("a"))
        await asyncio.sleep(0.05)
        assert cluster.asked == []
        await service.handle(events.UserRemoved("ann"))
        await service.tick(0.25)
        while state.world.brokers["a"].is_attached:
            await asyncio.sleep(0.01)
        assert cluster.asked == ["a"]
        await service.stop()

    run(story())


def test_of_many_events_those_before_one_that_failed_are_carried_out():
    def broken() -> events.Event:
        raise RuntimeError("a bug")

    async def story() -> None:
        store = MemoryStore()
        service = make(store)
        await service.register("a", registration("a"))
        with pytest.raises(RuntimeError, match="a bug"):
            await service.handle_all([lambda: events.SubscriptionKept("ann", wanted("1")), broken])
        assert ("user", "ann") in store.rows
        [_, adopt] = await service.instructions("a", "1", 0, 0)
        assert (type(adopt), adopt.user) == (Adopt, "ann")

    run(story())


def test_what_waited_for_a_dead_broker_is_forgotten():
    async def story() -> None:
        service = make()
        await service.register("a", registration("a"))
        await service.place("ann", PlacementRequest())
        assert b"tocsin_coordinator_instructions_waiting 2.0" in service.metrics.render()
        await service.handle(events.BrokerRemoved("a"))
        assert b"tocsin_coordinator_instructions_waiting 0.0" in service.metrics.render()
        await service.stop()

    run(story())


def test_an_address_where_nobody_listens_refuses():
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            assert not await is_refused(f"http://127.0.0.1:{port}", 5)
        assert await is_refused(f"http://127.0.0.1:{port}", 5)
        assert not await is_refused("http://[bad", 1)
        assert not await is_refused("http://nobody.invalid:1", 5)

    run(story())


def test_a_broker_whose_process_ended_is_dead_after_three_seconds():
    async def story() -> None:
        service = make()
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        await service.register("a", Registration("1", f"http://127.0.0.1:{port}"))
        for _ in range(12):
            await service.tick(0.25)
            await asyncio.sleep(0.02)  # for the address to be asked
        assert service.state.world.brokers["a"].state == "dead"
        await service.stop()

    run(story())
