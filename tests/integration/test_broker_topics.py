"""Topics across broker processes that a coordinator process watches: joins, a drain, a kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import Program, token
from support.topic_brokers import Subscriber
from tocsin.broker.upstream.topics import owner_of

pytestmark = pytest.mark.integration
NAMES = ("a", "b", "c")


class System:
    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.coordinator = Program("coordinator", data_dir, coordinator__placement="round_robin")
        self.brokers: dict[str, Program] = {}
        self._http = httpx.Client(timeout=20, trust_env=False)

    def start(self, *names: str) -> None:
        for name in names:
            known = {"broker.coordinator": self.coordinator.url, "broker.drain_timeout": "5s"}
            self.brokers[name] = Program("broker", self.data_dir, name, **known)
        for name in names:
            self.brokers[name].wait_ready()

    def ask(self, method: str, url: str, who: str, *can: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token(self.data_dir, who, *can)}"}
        answer = self._http.request(method, url, headers=headers, **more)
        answer.raise_for_status()
        return answer.json()

    def publish(self, at: str, topic: str, *numbers: int) -> list[str]:
        url = f"{self.brokers[at].url}/topics/{topic}/messages"
        return [self.ask("POST", url, "paul", "publish:*", json=number)["position"] for number in numbers]

    def subscriber(self, at: str, topic: str, position: str | None = None) -> Subscriber:
        """Someone who is placed at a broker."""
        for number in range(100):
            user = f"{at}{number}"
            place = self.ask("POST", f"{self.coordinator.url}/users/{user}/placement", user, "topic:*", json={})
            if place["broker"] == at:
                return Subscriber(place["url"], topic, position, token(self.data_dir, user, "topic:*"))
        raise AssertionError(f"nobody is placed at {at}")

    def live(self) -> set[str]:
        found = self.ask("GET", f"{self.coordinator.url}/brokers", "x", "coordinator")["brokers"]
        return {broker["name"] for broker in found if broker["state"] == "live"}

    def stop(self) -> None:
        for program in (*self.brokers.values(), self.coordinator):
            program.kill()
        self._http.close()


@contextmanager
def system(data_dir: Path, *names: str) -> Iterator[System]:
    made = System(data_dir)
    try:
        made.coordinator.wait_ready()
        made.start(*names)
        _until(lambda: made.live() == set(names))
        yield made
    finally:
        made.stop()


def _until(is_so: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.1)

    asyncio.run(asyncio.wait_for(wait(), 60))


async def until(is_so: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not await asyncio.to_thread(is_so):
            await asyncio.sleep(0.1)

    await asyncio.wait_for(wait(), 60)


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 120)

    asyncio.run(bounded())


def topic_of(owner: str) -> str:
    return next(f"t{n}" for n in range(1000) if owner_of(f"t{n}", NAMES) == owner)


def test_a_topic_outlives_joins_drains_and_kills_of_its_owner(tmp_path: Path) -> None:
    topic = topic_of("c")

    async def story(world: System) -> None:
        publish = lambda at, *numbers: asyncio.to_thread(world.publish, at, topic, *numbers)  # noqa: E731
        async with world.subscriber("a", topic) as at_a, world.subscriber("b", topic) as at_b:
            before = await publish("a", 1, 2)
            await publish("b", 3)
            assert await at_a.until(3) == await at_b.until(3) == [1, 2, 3]

            await asyncio.to_thread(world.start, "c")
            await until(lambda: world.live() == {"a", "b", "c"})
            await publish("c", 4)
            await publish("a", 5)
            assert await at_a.until(5) == await at_b.until(5) == [1, 2, 3, 4, 5]
            async with world.subscriber("c", topic, before[0]) as back:
                assert await back.until(4) == [2, 3, 4, 5]

            assert await asyncio.to_thread(world.brokers["c"].stop) == 0
            await publish("b", 6)
            assert await at_a.until(6) == await at_b.until(6) == [1, 2, 3, 4, 5, 6]
            assert at_a.gaps == at_b.gaps == []

            await asyncio.to_thread(world.start, "c")
            await until(lambda: "c" in world.live())
            await publish("c", 7)
            assert await at_a.until(7) == await at_b.until(7) == [1, 2, 3, 4, 5, 6, 7]
            assert at_a.gaps == at_b.gaps == []

            world.brokers["c"].kill()
            await until(lambda: "c" not in world.live())
            await until(lambda: _is_published(world, topic))
            await at_a.until(8)
            await at_b.until(8)
            assert at_a.gaps == at_b.gaps == [("owner", None)]

    with system(tmp_path, "a", "b") as world:
        run(story(world))


def test_a_broker_that_leaves_while_the_coordinator_is_away_hands_its_topics_over(tmp_path: Path) -> None:
    topic = topic_of("c")

    async def story(world: System) -> None:
        publish = lambda at, *numbers: asyncio.to_thread(world.publish, at, topic, *numbers)  # noqa: E731
        async with world.subscriber("a", topic) as at_a, world.subscriber("b", topic) as at_b:
            await publish("a", 1)
            world.coordinator.kill()
            assert await asyncio.to_thread(world.brokers["c"].stop) == 0
            await publish("b", 2)
            assert await at_a.until(2) == await at_b.until(2) == [1, 2]
            assert at_a.gaps == at_b.gaps == []

    with system(tmp_path, *NAMES) as world:
        run(story(world))


def _is_published(world: System, topic: str) -> bool:
    try:
        return bool(world.publish("a", topic, 8))
    except httpx.HTTPStatusError as refused:
        if refused.response.status_code != 503:
            raise
        return False
