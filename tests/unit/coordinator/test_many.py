"""Thousands of users on five brokers, with the real service and SQLite: everyone is somewhere, nothing is done twice.

What an event costs is counted in rows written and instructions given, which do not depend on the machine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random

from support.coordinators import NoCluster, wanted
from tocsin.coordinator import events
from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.rows import Change
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.service import Coordinator
from tocsin.coordinator.state import State
from tocsin.coordinator.store.sqlite import SqliteStore
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import (
    Acknowledged,
    Adopt,
    Holding,
    Instruction,
    Load,
    Outcome,
    PlacementRequest,
    Registration,
    Report,
)

SECRET = b"a secret of at least thirty-two bytes"
BROKERS, USERS = [f"b{n}" for n in range(5)], [f"u{n}" for n in range(2500)]
EACH = len(USERS) // len(BROKERS)


class CountingStore(SqliteStore):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.written: Counter[str] = Counter()

    def save(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        self.written.update(change.kind for change in changes)
        super().save(changes)


class Crowd:
    """A life of the coordinator, and brokers that do at once what they are told."""

    def __init__(self, path: Path) -> None:
        state = State(Rules(), placement_policy("least_loaded"), Random(0))
        self.store = CountingStore(path)
        self.service = Coordinator(state, self.store, NoCluster(), secret=SECRET)
        self._after = dict.fromkeys(BROKERS, 0)

    async def register(self) -> None:
        for name in BROKERS:
            await self.service.register(name, Registration("1", f"http://{name}.invalid:1"))

    async def obey(self, name: str) -> list[Instruction]:
        done: list[Instruction] = []
        while page := await self.service.instructions(name, "1", self._after[name], 0):
            self._after[name] = page[-1].number
            done += page
        await self.report(name, outcomes=[Outcome(one.number, True) for one in done])
        return done

    async def report(self, name: str, **what: object) -> None:
        assert (await self.service.report(name, Report("1", Load(), **what))).is_known  # type: ignore[arg-type]

    def at(self, name: str) -> list[str]:
        return sorted(self.service.state.world.users.residents[name])

    def written(self) -> Counter[str]:
        written, self.store.written = self.store.written, Counter()
        return written

    async def end(self) -> None:
        await self.service.stop()
        self.service.close()


async def story(path: Path) -> None:
    crowd = Crowd(path)
    service = crowd.service
    await crowd.register()
    crowd.written()

    await asyncio.gather(*(service.place(user, PlacementRequest()) for user in USERS))
    await asyncio.gather(*(service.handle(events.SubscriptionKept(u, wanted("1"), _home(service, u))) for u in USERS))
    assert [len(crowd.at(name)) for name in BROKERS] == [EACH] * len(BROKERS)
    assert crowd.written()["user"] <= 2 * len(USERS)

    for name in BROKERS:
        adopted = [one for one in await crowd.obey(name) if isinstance(one, Adopt)]
        assert sorted(one.user for one in adopted) == crowd.at(name), "each is told once"
        await crowd.report(name, is_full=True, holdings=[Holding(user, ["topic:t1"]) for user in crowd.at(name)])
    assert sum(len(presence.holdings) for presence in service.state.world.presence.values()) == len(USERS)
    assert not crowd.written(), "who is online is not durable"

    for name in BROKERS:
        await crowd.report(name, acknowledged=[Acknowledged(user, "1", "07") for user in crowd.at(name)])
    assert crowd.written() == {"user": len(USERS)}
    for _ in range(8):
        await service.tick(0.25)
    assert not crowd.written(), "time that passes writes nothing"

    moved = crowd.at("b4")
    await service.handle(events.BrokerRemoved("b4"))
    told = [one for name in BROKERS[:4] for one in await crowd.obey(name) if isinstance(one, Adopt)]
    assert sorted(one.user for one in told) == moved
    assert all(len(crowd.at(name)) >= EACH for name in BROKERS[:4])
    assert crowd.written()["user"] == len(moved)
    service.state.check_invariants()
    homes = {user: _home(service, user) for user in USERS}
    await crowd.end()

    again = Crowd(path)
    assert {user: _home(again.service, user) for user in USERS} == homes
    assert {u.subscriptions["1"].position for u in again.service.state.world.users} == {"07"}
    assert again.service.state.world.brokers["b4"].state is BrokerState.GONE
    await again.end()


def test_thousands_of_users_are_placed_told_reported_and_rescued(tmp_path: Path):
    asyncio.run(story(tmp_path / "coordinator.db"))


def _home(service: Coordinator, user: str) -> str | None:
    return service.state.world.users[user].broker


async def rescue(path: Path) -> None:
    """Two brokers, one of which dies with everybody on it: each event places a part, and they follow one another."""
    crowd = Crowd(path)
    service, living = crowd.service, crowd.service.state.living
    await service.register("b0", Registration("1", "http://b0.invalid:1"))
    await asyncio.gather(*(service.place(user, PlacementRequest()) for user in USERS))
    await service.register("b1", Registration("1", "http://b1.invalid:1"))
    crowd.written()

    await service.handle(events.BrokerRemoved("b0"))
    left, begun = len(crowd.at("b0")), crowd.written()["user"]
    assert (left + begun, living.is_housing) == (len(USERS), True)
    assert begun <= len(USERS) // 4, "others have their turn"
    asking = crowd.at("b0")[-1]
    assert (await service.place(asking, PlacementRequest())).broker == "b1", "who asks does not wait"
    running = asyncio.create_task(service.run())
    async with asyncio.timeout(20):
        while crowd.at("b0"):
            await asyncio.sleep(0.01)
    running.cancel()
    await service.settled()
    assert sorted(one.user for one in await crowd.obey("b1") if isinstance(one, Adopt)) == sorted(USERS)
    await service.tick(0.25)
    assert not living.is_housing
    service.state.check_invariants()
    await crowd.end()


def test_whom_a_dead_broker_leaves_are_placed_in_parts(tmp_path: Path):
    asyncio.run(rescue(tmp_path / "coordinator.db"))
