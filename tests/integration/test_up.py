"""The whole system by one command, over TLS: it starts, carries a publication from one person to another, and stops."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.authority import Certificate
from tocsin.client import Gap, connect
from tocsin.config import Client
from tocsin.system.ports import free_ports
from tocsin.tokens import mint, read_secret

pytestmark = [pytest.mark.spark, pytest.mark.integration]

PARTS = ["cluster", "coordinator", "broker_1", "broker_2", "dashboard"]


@pytest.fixture
def up(tmp_path: Path, certificate: Certificate) -> Iterator[subprocess.Popen[str]]:
    ports = free_ports([0, 0])
    sets: dict[str, Any] = {
        "cluster.port": ports[0],
        "coordinator.port": ports[1],
        "broker.port": 0,
        "dashboard.port": 0,
        "cluster.driver_memory": "512m",
    }
    tls = {"tls_certificate": certificate.chain, "tls_key": certificate.key, "ca_file": certificate.ca}
    sets |= {f"http.{name}": value for name, value in tls.items()}
    command = [sys.executable, "-m", "tocsin.cli.main", "up", "--brokers", "2", "--json"]
    command += [f"--set={name}={value}" for name, value in sets.items()]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(90)


def until_ready(process: subprocess.Popen[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(json.loads(line))
        if "ready" in said[-1]:
            return said, said[-1]["ready"]
    raise AssertionError(said)


async def from_one_to_another(coordinator: str, secret: bytes, ca_file: str) -> Any:
    trusting = Client(ca_file=ca_file)

    def person(name: str) -> Any:
        token = mint(secret, name, ["topic:*", "publish:*"], 600)
        return connect(coordinator=coordinator, token=token, settings=trusting)

    async with person("ann") as ann, person("bob") as bob, asyncio.timeout(60):
        following = await ann.topic("news")
        await bob.publish("news", {"n": 1})
        item = await anext(following)
        assert not isinstance(item, Gap)
        return item.payload


def test_it_starts_serves_and_stops_in_order(
    up: subprocess.Popen[str], tmp_path: Path, certificate: Certificate
) -> None:
    said, addresses = until_ready(up)
    assert list(addresses) == PARTS
    assert len(set(addresses.values())) == len(PARTS)
    assert all(url.startswith("https://") for url in addresses.values())
    assert [entry["process"] for entry in said if str(entry.get("message")).startswith("ready at")] == PARTS
    secret = read_secret(tmp_path / ".tocsin" / "secret")
    assert asyncio.run(from_one_to_another(addresses["coordinator"], secret, certificate.ca)) == {"n": 1}
    up.send_signal(signal.SIGTERM)
    rest, _ = up.communicate(timeout=90)
    ends = [(entry["process"], entry["message"]) for entry in map(json.loads, rest.splitlines())]
    stopped = [part for part, message in ends if message == "stopped with code 0"]
    assert stopped[0] == "dashboard", ends
    assert sorted(stopped[1:3]) == ["broker_1", "broker_2"], ends
    assert stopped[3:] == ["coordinator", "cluster"]
    assert up.returncode == 0
