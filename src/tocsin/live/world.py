"""The processes of the experiment: one cluster, one coordinator and the brokers, for all of its runs."""

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
from tocsin.protocol.coordination import Placement, PlacementRequest
from tocsin.scenarios.city.terrain import Size
from tocsin.system.parts import Addresses, Part, broker_names, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.process import Process, without_settings
from tocsin.tokens import ensure_secret, mint
from tocsin.units import format_duration

TOKEN_S = 86_400.0
ASK_S = 300.0  # Spark compiles every channel
READY_S = 90.0
LOOK_S = 0.2
MOVES_IN_FLIGHT, MOVES_PER_S = 64, 200


class World:
    def __init__(self, root: Path, experiment: Experiment, size_m: Size) -> None:
        self._root, self._secret = root, ensure_secret(root / "secret")
        self.brokers = broker_names(len(experiment.spots))
        ports = free_ports([0] * (len(self.brokers) + 2))
        self._at = Addresses(ports[0], ports[1], dict(zip(self.brokers, ports[2:], strict=True)))
        self._parts = list(_parts(root, self._at, experiment, size_m))
        self._processes: list[Process] = []
        self._http = httpx.AsyncClient(timeout=ASK_S, trust_env=False, verify=False)
        self._admin = {"Authorization": f"Bearer {self.token('lab', 'admin')}"}

    async def start(self) -> None:
        """Stage by stage: each needs the one before."""
        for stage in sorted({part.stage for part in self._parts}):
            begun = [self._begin(part) for part in self._parts if part.stage == stage]
            await asyncio.gather(*(asyncio.to_thread(process.wait_ready) for process in begun))
        async with asyncio.timeout(READY_S):
            while not await self._has_all():
                await asyncio.sleep(LOOK_S)

    def check(self) -> None:
        """Raise if a part is gone."""
        for process in self._processes:
            process.check()

    async def stop(self) -> None:
        await self._http.aclose()
        for process in self._processes:
            await asyncio.to_thread(process.kill)

    def token(self, subject: str, *capabilities: str) -> str:
        return mint(self._secret, subject, capabilities, TOKEN_S)

    async def statements(self, statements: list[str]) -> None:
        for text in statements:
            await self._ask("POST", f"{self._at.cluster_url}/statements", json={"text": text})

    async def lag_s(self) -> float:
        """How far the channels are behind, the slowest of them."""
        found = await self._ask("GET", f"{self._at.cluster_url}/channels")
        return max(float(channel["lag_s"]) for channel in found["channels"])

    async def append(self, dataset: str, records: list[dict[str, Any]], key: str) -> None:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        url = f"{self._at.cluster_url}/datasets/{dataset}/records"
        await self._ask("POST", url, content=msgspec.json.Encoder().encode_lines(records), headers=headers)

    async def coordinator(self, method: str, path: str, body: Any = None) -> Any:
        content = {} if body is None else {"json": body}
        return await self._ask(method, f"{self._at.coordinator_url}{path}", **content)

    async def place(self, user: str, location: tuple[float, float] | None) -> Placement:
        asked = msgspec.to_builtins(PlacementRequest(location))
        return msgspec.convert(await self.coordinator("POST", f"/users/{user}/placement", asked), Placement)

    async def _has_all(self) -> bool:
        known = (await self.coordinator("GET", "/brokers"))["brokers"]
        return {broker["name"] for broker in known if broker["state"] == "live"} == set(self.brokers)

    async def _ask(self, method: str, url: str, **content: Any) -> Any:
        headers = self._admin | content.pop("headers", {})
        try:
            answer = await self._http.request(method, url, headers=headers, **content)
        except httpx.HTTPError as problem:
            raise Unavailable(f"{method} {url}: {problem or type(problem).__name__}") from None
        if not answer.is_success:
            raise Unavailable(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if answer.content else None

    def _begin(self, part: Part) -> Process:
        log, environ = self._root / f"{part.name}.log", without_settings(os.environ)
        process = Process(part.name, part.command(), part.url, log=log, environ=environ)
        self._processes.append(process)
        return process


def _parts(root: Path, addresses: Addresses, experiment: Experiment, size_m: Size) -> Iterator[Part]:
    """With the brokers where they stand."""
    common = {
        "auth.secret_file": str((root / "secret").absolute()),
        "log.level": "warning",
        "cluster.driver_memory": "1g",
        "cluster.master": "local[2]",
        "broker.rate_window": format_duration(experiment.window_s),
        "broker.drain_timeout": "0ms",
        "coordinator.balance_every": format_duration(experiment.check_s),
        "coordinator.moves_in_flight": str(MOVES_IN_FLIGHT),
        "coordinator.moves_per_s": str(MOVES_PER_S),
    }
    spots = dict(zip(addresses.brokers, experiment.spots, strict=True))
    for part in parts_of(root / "data", addresses, common):
        x, y = spots.get(part.name, (0.0, 0.0))
        where = {"broker.location": f"{x * size_m[0]:g}, {y * size_m[1]:g}"} if part.name in spots else {}
        yield replace(part, settings={**part.settings, **where})
