"""Whose death excuses a gap, and steps that are given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from tocsin.broker.upstream.topics import owner_of
from tocsin.chaos.faults import Faults, may_own
from tocsin.chaos.journal import Journal
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
