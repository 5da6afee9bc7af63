"""A broker process between a real data cluster and its subscribers, when either of the two is killed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.processes import ClusterProcess, Program, free_port, token
from support.topic_brokers import Subscriber

pytestmark = [pytest.mark.integration, pytest.mark.spark]
SCRIPT = """
CREATE ACTIVE DATASET Reports (id BIGINT, kind STRING, size DOUBLE);
CREATE CONTINUOUS CHANNEL Large(kind STRING, least DOUBLE) AS
  SELECT r.id FROM Reports r WHERE r.kind = :kind AND r.size >= :least;
"""
FIRES = {"kind": "channel", "name": "Large", "arguments": ["fire", 10]}
SAME = {"kind": "channel", "name": "large", "arguments": {"LEAST": 10.0, "kind": "fire"}}


class System:
    """A cluster that can be killed, and a broker without a coordinator."""

    def __init__(self, root: Path) -> None:
        self.data_dir = root / "data"
        self.data_dir.mkdir()
        self._port, self._broker_port = free_port(), free_port()
        self.cluster = self._cluster()
        with httpx.Client(base_url=self.cluster.url, timeout=60, trust_env=False) as http:
            http.post("/statements", json={"text": SCRIPT}).raise_for_status()
        self.broker = self._broker()

    def _cluster(self) -> ClusterProcess:
        cluster = ClusterProcess(self.data_dir, self._port)
        cluster.wait_ready()
        return cluster

    def _broker(self) -> Program:
        broker = Program(
            "broker", self.data_dir, "north", self._broker_port,
            broker__cluster=self.cluster.url, upstream__ack_interval="200ms",
        )  # fmt: skip
        broker.wait_ready()
        return broker

    def restart_cluster(self) -> None:
        self.cluster.kill()
        self.cluster = self._cluster()

    def restart_broker(self) -> None:
        self.broker = self._broker()

    def subscriber(self, user: str, target: dict[str, Any], position: str | None = None) -> Subscriber:
        can = ("subscribe:*", "ingest:Reports")
        return Subscriber(self.broker.url, target, position, token(self.data_dir, user, *can))

    def append(self, *ids: int) -> None:
        lines = "".join(f'{{"id": {id}, "kind": "fire", "size": {id}}}\n' for id in ids)
        headers = {"Content-Type": "application/x-ndjson"}
        answer = httpx.post(
            f"{self.cluster.url}/datasets/Reports/records", content=lines, headers=headers, timeout=60, trust_env=False
        )
        answer.raise_for_status()

    def let_go(self) -> None:
        """End at the cluster what the broker holds there."""
        with httpx.Client(base_url=self.cluster.url, timeout=60, trust_env=False) as http:
            held = http.get("/subscriptions", params={"broker": "north"}).json()["subscriptions"]
            http.post("/subscriptions/remove", json={"ids": [one["id"] for one in held]}).raise_for_status()

    def wait_for_execution(self, after: str) -> None:
        """Until an execution later than that of the position has ended."""
        with httpx.Client(base_url=self.cluster.url, timeout=60, trust_env=False) as http:
            for _ in range(600):
                page = http.get("/channels/Large/results", params={"backend": 1, "limit": 1000}).json()
                if page["through"][:12] > after[:12]:
                    return
                time.sleep(0.1)
        raise AssertionError("nothing was executed")

    def stop(self) -> None:
        self.broker.kill()
        self.cluster.kill()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    made = System(tmp_path_factory.mktemp("channels"))
    yield made
    made.stop()


async def standing(system: System, user: str, target: dict[str, Any], position: str | None = None) -> Subscriber:
    """A subscriber, once the broker has reached the cluster."""
    for _ in range(200):
        one = system.subscriber(user, target, position)
        try:
            return await one.__aenter__()
        except AssertionError as refused:
            if "unavailable" not in str(refused):
                raise
            await asyncio.sleep(0.1)
    raise AssertionError("the broker never reached the cluster")


def ids(subscriber: Subscriber) -> list[int]:
    return [int(payload["id"]) for payload in subscriber.got]


async def _story(system: System) -> None:
    ann, bob = await standing(system, "ann", FIRES), await standing(system, "bob", SAME)
    assert ann.stream == bob.stream
    sent = [{"id": id, "kind": "fire", "size": id} for id in (9, 10, 11)]
    assert (await ann.records("Reports", *sent))["accepted"] == 3
    await asyncio.to_thread(system.append, 12, 13)
    await asyncio.gather(ann.until(4), bob.until(4))
    assert ids(ann) == ids(bob) == [10, 11, 12, 13]

    await bob.__aexit__()  # bob is offline from here on
    await asyncio.to_thread(system.append, 14)
    await ann.until(5)
    system.broker.kill()
    await asyncio.gather(ann.__aexit__(), return_exceptions=True)
    await asyncio.to_thread(system.append, 15)
    await asyncio.to_thread(system.restart_broker)
    ann = await standing(system, "ann", FIRES, ann.position)
    await asyncio.to_thread(system.append, 16)
    await ann.until(2)
    assert ids(ann) == [15, 16]

    await asyncio.to_thread(system.restart_cluster)  # ann stays connected
    await asyncio.to_thread(system.append, 17)
    await ann.until(3)
    assert ids(ann) == [15, 16, 17]
    bob = await standing(system, "bob", SAME, bob.position)
    await bob.until(4)
    assert ids(bob) == [14, 15, 16, 17]
    assert bob.recovered
    assert ann.gaps == bob.gaps == []
    await asyncio.gather(ann.__aexit__(), bob.__aexit__())

    system.broker.kill()
    await asyncio.to_thread(system.let_go)
    await asyncio.to_thread(system.append, 18)  # nobody holds the set: nothing is made for it
    await asyncio.to_thread(system.wait_for_execution, ann.position or "")
    await asyncio.to_thread(system.restart_broker)
    ann = await standing(system, "ann", FIRES, ann.position)
    await asyncio.to_thread(system.append, 19)
    await ann.until(1)
    assert ids(ann) == [19]
    assert not ann.recovered
    assert ann.gaps == [("unheld", None)]
    await ann.__aexit__()


def test_everything_arrives_once_though_the_broker_and_the_cluster_are_killed(system: System) -> None:
    asyncio.run(asyncio.wait_for(_story(system), 240))
