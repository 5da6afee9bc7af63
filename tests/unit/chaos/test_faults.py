"""Whose death excuses a gap, steps that are given up, and users with two devices."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tocsin.broker.upstream.topics import owner_of
from tocsin.chaos.evidence import Topic
from tocsin.chaos.faults import Faults, may_own
from tocsin.chaos.journal import Journal
from tocsin.chaos.people import Person
from tocsin.chaos.schedule import Kind, Step

BROKERS = ("a", "b", "c")
TOPICS = [f"t{n}" for n in range(60)]


def owned(name: str, among: tuple[str, ...] = BROKERS) -> set[str]:
    return {topic for topic in TOPICS if owner_of(topic, among) == name}


def test_while_all_were_there_a_broker_owns_what_is_its_own() -> None:
    assert may_own("a", BROKERS, set(), TOPICS) == owned("a") != set(TOPICS)


def test_one_that_was_away_may_or_may_not_have_its_topics_back() -> None:
    assert may_own("a", BROKERS, {"b"}, TOPICS) == owned("a") | owned("a", ("a", "c"))
    assert may_own("a", BROKERS, {"a"}, TOPICS) == owned("a")


def test_the_last_one_may_own_everything() -> None:
    assert may_own("a", BROKERS, {"b", "c"}, TOPICS) == set(TOPICS)


class OneProcess:
    """A world with a coordinator and nothing else."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def is_running(self, name: str) -> bool:
        return True

    async def kill(self, name: str) -> None:
        self.did.append("kill")

    async def restart(self, name: str) -> None:
        self.did.append("restart")


def test_a_step_that_is_given_up_starts_nothing_again(tmp_path: Path) -> None:
    async def story() -> list[str]:
        world: Any = OneProcess()
        nothing: Any = None
        faults = Faults(world, [], nothing, [], Random(1), Journal(tmp_path / "journal"))
        faults.strike(Step(0.0, Kind.KILL_COORDINATOR, 0, 0.01))
        await asyncio.sleep(0)
        await faults.abandon()
        await asyncio.sleep(0.05)
        return list(world.did)

    assert asyncio.run(story()) == ["kill"]


class OneCoordinator:
    """A world with a broker that serves, and a coordinator that takes plans."""

    coordinator_url = "http://coordinator"

    def __init__(self) -> None:
        self.moved: list[str] = []

    def serving(self) -> list[str]:
        return ["a"]

    async def ask(self, method: str, url: str, json: Any) -> None:
        self.moved += [move["user"] for move in json["moves"]]


def devices(journal: Journal) -> list[Person]:
    return [Person(name, "", "", {}, journal, device) for name, device in [("ann", ""), ("bob", ""), ("ann", "-page")]]


def test_a_user_with_two_devices_is_moved_once(tmp_path: Path) -> None:
    async def story() -> list[str]:
        world: Any = OneCoordinator()
        nothing: Any = None
        journal = Journal(tmp_path / "journal")
        faults = Faults(world, devices(journal), nothing, [], Random(1), journal)
        faults.strike(Step(0.0, Kind.SHUFFLE, 0, 0.01))
        await faults.settle()
        return list(world.moved)

    assert asyncio.run(story()) == ["ann", "bob"]


def test_what_two_devices_follow_together_is_not_ended_by_one(tmp_path: Path) -> None:
    async def story() -> list[str]:
        nothing: Any = None
        journal = Journal(tmp_path / "journal")
        ann = devices(journal)[0]
        for id in ("w0", "x1"):
            ann.subscribe(id, Topic("t"))
        ann.shared.add("w0")
        faults = Faults(nothing, [ann], nothing, [], Random(1), journal)
        for whom in (1, 2):
            faults.strike(Step(0.0, Kind.UNSUBSCRIBE, whom, 0.01))
            await faults.settle()
        assert faults.done == {"unsubscribe": 1}
        return list(ann.held)

    assert asyncio.run(story()) == ["w0"]
