"""``tocsin coordinator`` as a process: killed at any moment, it goes on from what it answered for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.processes import Program, free_port
from tocsin.errors import Unavailable

pytestmark = pytest.mark.integration
WANTED = {"id": "1", "target": {"kind": "topic", "name": "news"}, "position": "03"}


class Running:
    """The program at one port and in one directory, life after life; everyone is admin there."""

    def __init__(self, directory: Path, port: int) -> None:
        directory.mkdir()
        self.directory, self._port = directory, port
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False)

    def start(self) -> None:
        self.process = self.make(self._port)
        self.process.wait_ready()

    def make(self, port: int) -> Program:
        settings = {"coordinator.insecure": "true", "coordinator.dead_after": "3s", "log.level": "warning"}
        return Program("coordinator", self.directory, port=port, **settings)

    # --- as a broker -----------------------------------------------------------------------------------

    def register(self, name: str) -> dict:
        told = {"incarnation": f"{name}1", "url": "http://127.0.0.1:9"}
        return self.http.put(f"/brokers/{name}", json=told).raise_for_status().json()

    def report(self, name: str, **more: object) -> bool:
        told = {"incarnation": f"{name}1", "load": {}, **more}
        answer = self.http.post(f"/brokers/{name}/report", json=told).raise_for_status().json()
        return bool(answer["is_known"])

    def instructions(self, name: str, after: int = 0) -> list[dict]:
        path = f"/brokers/{name}/instructions?incarnation={name}1&after={after}&wait_s=10"
        return self.http.get(path).raise_for_status().json()["instructions"]


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "data", free_port())
    made.start()
    yield made
    made.http.close()
    made.process.kill()


def test_a_killed_coordinator_goes_on_where_it_was(coordinator: Running):
    for name in ("a", "b"):
        coordinator.register(name)
    placed = coordinator.http.post("/users/ann/placement", json={}).json()
    source, to = placed["broker"], "b" if placed["broker"] == "a" else "a"
    coordinator.http.put("/users/ann/subscriptions/1", json=WANTED).raise_for_status()
    coordinator.http.post("/plans", json={"moves": [{"user": "ann", "to": to}]}).raise_for_status()
    adopt = coordinator.instructions(to)[-1]
    coordinator.report(to, outcomes=[{"number": adopt["number"], "ok": True}])
    before = coordinator.instructions(source)[-1]
    assert before["do"] == "send"

    coordinator.process.kill()
    coordinator.start()

    assert not coordinator.report(source)
    for name in (source, to):
        assert not coordinator.register(name)["was_given_up"]
    again = coordinator.instructions(source, after=before["number"])
    assert [one["do"] for one in again if one["do"] != "topology"] == ["adopt", "send"]
    assert again[-1]["version"] == before["version"]
    adopted = [one for one in coordinator.instructions(to, after=adopt["number"]) if one["do"] == "adopt"]
    assert adopted[-1]["subscriptions"] == [WANTED]
    coordinator.report(to, outcomes=[{"number": adopted[-1]["number"], "ok": True}])
    coordinator.report(to, arrivals=[{"user": "ann", "version": before["version"]}])
    coordinator.report(source, outcomes=[{"number": again[-1]["number"], "ok": True}])
    assert coordinator.http.get("/users/ann").json()["broker"] == to
    assert coordinator.http.get("/moves").json()["moves"][0]["outcome"] == "arrived"


def test_a_broker_that_falls_silent_loses_its_users(coordinator: Running):
    for name in ("a", "b"):
        coordinator.register(name)
    users = {f"u{n}": coordinator.http.post(f"/users/u{n}/placement", json={}).json()["broker"] for n in range(4)}
    assert set(users.values()) == {"a", "b"}
    deadline = time.monotonic() + 30
    while coordinator.http.get("/brokers/b").json()["state"] != "dead":
        assert time.monotonic() < deadline
        assert coordinator.report("a")
        time.sleep(0.2)
    assert {one["broker"] for one in coordinator.http.get("/assignments").json()["assignments"]} == {"a"}
    assert coordinator.register("b")["was_given_up"]


def test_a_signal_ends_the_program_in_peace_and_answers_who_waits(coordinator: Running):
    coordinator.register("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(coordinator.instructions, "a", 2**60)
        while coordinator.http.get("/version").is_error or not waiting.running():
            time.sleep(0.05)
        time.sleep(0.3)  # for the request to have come
        assert coordinator.process.stop() == 0
        assert waiting.result(30) == []


def test_two_coordinators_do_not_share_a_store(coordinator: Running):
    other = coordinator.make(free_port())
    with pytest.raises(Unavailable, match=r"(?s)ended with code 1 .*does another coordinator use it\?"):
        other.wait_ready()
