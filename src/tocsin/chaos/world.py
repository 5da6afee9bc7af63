"""The processes of fault runs: one cluster for several seeds, a coordinator and brokers for each.

Starting Spark takes longer than a seed, so seeds share a cluster and have datasets and channels of their own in
it. Everything else is new for each seed.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tocsin.chaos.journal import Journal
from tocsin.chaos.schedule import Story
from tocsin.errors import Unavailable
from tocsin.system.parts import Addresses, Part, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.process import Process, kill_all, without_settings
from tocsin.tokens import ensure_secret, mint
from tocsin.unanswered import UNANSWERED

TOKEN_S = 86_400.0
STATEMENTS_S = 90.0
START_S = 300.0  # of a broker or the coordinator; on a busy machine it takes a while
CLUSTER_START_S = 600.0
LOOK_S = 0.1
CLUSTER_SETTINGS = {"cluster.driver_memory": "768m", "cluster.master": "local[2]", "log.level": "warning"}
SERVER_SETTINGS = {
    "log.level": "info",
    "broker.drain_timeout": "8s",
    "broker.write_buffer": "4 kB",
    "broker.outbox_bytes": "16 kB",
}
PEOPLE_MAY = ("subscribe:*", "topic:*", "publish:*", "ingest:*")


class ClusterHost:
    """One data cluster that may be killed and comes back in place."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.secret_path = root / "secret"
        self.secret = ensure_secret(self.secret_path)
        self.port = free_ports([0])[0]
        self._part = parts_of(root / "data", Addresses(self.port, 0, {}), CLUSTER_SETTINGS | self.shared)[0]
        self._process: Process | None = None

    @property
    def shared(self) -> dict[str, str]:
        return {"auth.secret_file": str(self.secret_path.absolute())}

    @property
    def url(self) -> str:
        return self._part.url

    async def ensure(self) -> None:
        """Have it running and ready."""
        if self._process is None or self._process.code is not None:
            self._process = _started(self._part, self.root)
        await asyncio.to_thread(self._process.wait_ready, lambda waited: None, CLUSTER_START_S)

    async def kill(self) -> None:
        if self._process is not None:
            await asyncio.to_thread(self._process.kill)

    async def stop(self) -> None:
        """In order; killed where somebody does not wait for that."""
        if self._process is None:
            return
        try:
            await asyncio.to_thread(self._process.stop)
        except BaseException:
            kill_all([self._process])
            raise

    def token(self, subject: str, capabilities: Sequence[str]) -> str:
        return mint(self.secret, subject, capabilities, TOKEN_S)


class World:
    """Coordinator and brokers of one seed."""

    def __init__(self, host: ClusterHost, story: Story, root: Path, journal: Journal) -> None:
        self.host, self.root, self._journal = host, root, journal
        names = [f"s{story.seed}_b{number}" for number in range(1, story.brokers + 1)]
        ports = free_ports([0] * (story.brokers + 1))
        self.addresses = Addresses(host.port, ports[0], dict(zip(names, ports[1:], strict=True)))
        parts = parts_of(root, self.addresses, SERVER_SETTINGS | host.shared)[1:]
        self._parts = {part.name: part for part in parts}
        self._processes: dict[str, Process] = {}
        self._kills: Counter[str] = Counter()
        self.leaving: set[str] = set()  # brokers that drain or were killed, and are not ready again
        self.unsteady: set[str] = set()  # brokers that ever were among these
        self.http = httpx.AsyncClient(timeout=10.0, trust_env=False)
        self._admin = {"Authorization": f"Bearer {host.token('chaos', ['admin'])}"}

    @property
    def brokers(self) -> list[str]:
        return list(self.addresses.brokers)

    @property
    def coordinator_url(self) -> str:
        return self.addresses.coordinator_url

    def broker_url(self, name: str) -> str:
        return self.addresses.broker_url(name)

    def running(self) -> list[str]:
        """Brokers whose process lives."""
        return [name for name in self.brokers if self.is_running(name)]

    def serving(self) -> list[str]:
        """Those of them that do not drain."""
        return [name for name in self.running() if name not in self.leaving]

    def is_running(self, name: str) -> bool:
        return name in self._processes and self._processes[name].code is None

    async def start(self) -> None:
        """Have all of them running, and the brokers known to the coordinator: newcomers are spread over all."""
        await asyncio.gather(*(self.restart(name) for name in ("coordinator", *self.brokers)))
        async with asyncio.timeout(START_S):
            while not await self._has_all():
                await asyncio.sleep(LOOK_S)

    async def _has_all(self) -> bool:
        try:
            known = await self.ask("GET", f"{self.coordinator_url}/brokers")
        except Unavailable:
            return False
        return {broker["name"] for broker in known["brokers"] if broker["state"] == "live"} >= set(self.brokers)

    async def restart(self, name: str) -> None:
        """Have it running and ready; where it is killed meanwhile, whoever did that starts it again."""
        if not self.is_running(name):
            self._processes[name] = _started(self._parts[name], self.root)
        kills = self._kills[name]
        try:
            await asyncio.to_thread(self._processes[name].wait_ready, lambda waited: None, START_S)
        except Unavailable:
            if self._kills[name] == kills:
                raise
        else:
            self.leaving.discard(name)
            self._journal.tell("started", part=name)

    async def kill(self, name: str) -> None:
        self._kills[name] += 1
        self.unsteady.add(name)
        await asyncio.to_thread(self._processes[name].kill)
        self._journal.tell("killed", part=name)

    async def drain(self, name: str) -> int:
        """Ask a broker to go; its exit code."""
        self.leaving.add(name)
        self.unsteady.add(name)
        self._kills[name] += 1  # it may be starting
        code = await asyncio.to_thread(self._processes[name].stop)
        self._journal.tell("drained", part=name, code=code)
        return code

    async def stop(self) -> None:
        """Without a pause between, in which somebody's impatience could leave some of them running."""
        kill_all(self._processes.values())
        await self.http.aclose()

    async def ask(self, method: str, url: str, **content: Any) -> Any:
        """A request as admin; its answer, or Unavailable."""
        try:
            answer = await self.http.request(method, url, headers=self._admin, **content)
        except UNANSWERED as problem:
            raise Unavailable(f"{method} {url}: {str(problem) or type(problem).__name__}") from None
        if not answer.is_success:
            raise Unavailable(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return answer.json() if answer.content else None

    async def statements(self, text: str) -> None:
        await self.ask("POST", f"{self.host.url}/statements", json={"text": text}, timeout=STATEMENTS_S)


def _started(part: Part, root: Path) -> Process:
    root.mkdir(parents=True, exist_ok=True)
    log = root / f"{part.name}.log"
    return Process(part.name, part.command(), part.url, log=log, environ=without_settings(os.environ))
