"""The processes of the experiment: one cluster, and around it systems of a coordinator and brokers each.

Several systems can be measured beside each other on the same executions of the channels, each with a scheme of its own:
they share nothing but the cluster.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tocsin.errors import Unavailable
from tocsin.live.experiment import Experiment
from tocsin.scenarios.city.terrain import Size
from tocsin.system.parts import Addresses, Part, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.process import Process, kill_all, without_settings
from tocsin.tokens import ensure_secret, mint
from tocsin.units import format_duration

TOKEN_S = 86_400.0
ASK_S = 300.0  # Spark compiles every channel
START_S = 600.0
LOOK_S = 0.2
TRIES = 3
MOVES_IN_FLIGHT, MOVES_PER_S = 64, 200
KEPT = 10_000  # decisions and moves that notes can ask for; a run that a busy machine slows down makes thousands
YIELD_AFTER = "10m"  # the first execution of a channel compiles it, and is not to be begun again on a busy machine


class System:
    """A coordinator and its brokers."""

    def __init__(self, world: World, name: str, addresses: Addresses, parts: list[Part]) -> None:
        self._world, self.url = world, addresses.coordinator_url
        self.name, self.brokers, self.parts = name, list(addresses.brokers), parts

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Of the coordinator."""
        return await self._world.ask(method, self.url + path, **({} if body is None else {"json": body}))

    async def has_all(self) -> bool:
        known = (await self.ask("GET", "/brokers"))["brokers"]
        return {broker["name"] for broker in known if broker["state"] == "live"} == set(self.brokers)


class World:
    def __init__(self, root: Path, experiment: Experiment, size_m: Size, systems: int = 1) -> None:
        self._root, self._secret = root, ensure_secret(root / "secret")
        self._processes: list[Process] = []
        self._http = httpx.AsyncClient(timeout=ASK_S, trust_env=False, verify=False)
        self._admin = {"Authorization": f"Bearer {self.token('lab', 'admin')}"}
        self._settings = _settings(root, experiment)
        ports = iter(free_ports([0] * (1 + systems * (1 + len(experiment.spots)))))
        self._cluster_port = next(ports)
        made = [self._system(f"s{number}", experiment, size_m, ports) for number in range(1, systems + 1)]
        self._cluster, self.systems = made[0].parts[0], made

    async def start(self, statements: list[str]) -> None:
        """The cluster with its datasets and channels, then the rest."""
        await self._begun([self._cluster])
        for text in statements:
            await self.ask("POST", f"{self._cluster.url}/statements", json={"text": text})
        for stage in (1, 2):
            await self._begun([part for system in self.systems for part in system.parts if part.stage == stage])
        async with asyncio.timeout(START_S):
            while not all([await system.has_all() for system in self.systems]):
                self.check()
                await asyncio.sleep(LOOK_S)

    def check(self) -> None:
        """Raise if a part is gone."""
        for process in self._processes:
            process.check()

    async def stop(self) -> None:
        """Without a pause between, in which somebody's impatience could leave some of them running."""
        kill_all(self._processes)
        await self._http.aclose()

    def token(self, subject: str, *capabilities: str) -> str:
        return mint(self._secret, subject, capabilities, TOKEN_S)

    async def append(self, dataset: str, records: list[dict[str, Any]], key: str) -> None:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        url = f"{self._cluster.url}/datasets/{dataset}/records"
        await self.ask("POST", url, content=msgspec.json.Encoder().encode_lines(records), headers=headers)

    async def lag_s(self) -> float:
        """How far the channels are behind, the slowest of them."""
        found = await self.ask("GET", f"{self._cluster.url}/channels")
        return max(float(channel["lag_s"]) for channel in found["channels"])

    async def ask(self, method: str, url: str, **content: Any) -> Any:
        headers = self._admin | content.pop("headers", {})
        answer = await self._request(method, url, headers=headers, **content)
        if not answer.is_success:
            raise Unavailable(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if answer.content else None

    async def _request(self, method: str, url: str, **content: Any) -> httpx.Response:
        """Said again after a broken connection, where saying it twice does no harm."""
        tries = TRIES if method != "POST" or "Idempotency-Key" in content["headers"] else 1
        while True:
            tries -= 1
            try:
                return await self._http.request(method, url, **content)
            except httpx.HTTPError as problem:
                if tries == 0:
                    raise Unavailable(f"{method} {url}: {str(problem) or type(problem).__name__}") from None

    def _system(self, name: str, experiment: Experiment, size_m: Size, ports: Iterator[int]) -> System:
        brokers = {f"{name}_b{number}": next(ports) for number in range(1, len(experiment.spots) + 1)}
        addresses = Addresses(self._cluster_port, next(ports), brokers)
        parts = parts_of(self._root / name, addresses, self._settings)
        return System(self, name, addresses, list(_placed(parts, experiment, size_m)))

    async def _begun(self, parts: list[Part]) -> None:
        begun = [self._begin(part) for part in parts]
        for process in begun:
            await asyncio.to_thread(process.wait_ready, timeout_s=START_S)

    def _begin(self, part: Part) -> Process:
        number = len(self._processes)
        log, environ = self._root / f"{number}-{part.name}.log", without_settings(os.environ)
        process = Process(part.name, part.command(), part.url, log=log, environ=environ)
        self._processes.append(process)
        return process


def _settings(root: Path, experiment: Experiment) -> dict[str, str]:
    return {
        "auth.secret_file": str((root / "secret").absolute()),
        "log.level": "warning",
        "cluster.driver_memory": "1g",
        "cluster.master": "local[2]",
        "channels.yield_after": YIELD_AFTER,
        "broker.rate_window": format_duration(experiment.window_s),
        "broker.drain_timeout": "0ms",
        "coordinator.balance_every": format_duration(experiment.check_s),
        "coordinator.kept_decisions": str(KEPT),
        "coordinator.moves_in_flight": str(MOVES_IN_FLIGHT),
        "coordinator.moves_per_s": str(MOVES_PER_S),
    }


def _placed(parts: list[Part], experiment: Experiment, size_m: Size) -> Iterator[Part]:
    """With the brokers where they stand."""
    spots = iter(experiment.spots)
    for part in parts:
        where = {}
        if part.stage == 2:
            x, y = next(spots)
            where = {"broker.location": f"{x * size_m[0]:g}, {y * size_m[1]:g}"}
        yield replace(part, settings={**part.settings, **where})
