"""The subscribers of one run at one system, and what is noted of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from tocsin.errors import TocsinError, Unavailable
from tocsin.live.experiment import Experiment
from tocsin.live.handover import Handover
from tocsin.live.notes import Notes, Past, Sample
from tocsin.live.person import Person
from tocsin.live.world import KEPT, System, World
from tocsin.policies.base import Point
from tocsin.scenarios.city import Intent
from tocsin.scenarios.city.audience import user_name
from tocsin.scenarios.recording import Event

EMPTY_S = 120.0
LOOK_S = 0.5
AT_ONCE = 64  # requests of people under way


class Company:
    """``where`` are people's positions, by name, as they were told last."""

    def __init__(
        self, world: World, system: System, experiment: Experiment, label: str, where: Mapping[str, Point]
    ) -> None:
        self._system, self._experiment, self._where, self.label = system, experiment, where, label
        self._handovers: list[Handover] = []
        self._doors = asyncio.Semaphore(AT_ONCE)
        self._turns: dict[str, asyncio.Lock] = {}
        names = [user_name(number) for number in range(experiment.subscribers)]
        self._people = {name: self._person(name, world.token(name, "subscribe:*")) for name in names}
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: list[str] = []
        self._samples: list[Sample] = []
        self._began_at = 0.0
        self._past: list[Past] = []

    async def begin(self) -> None:
        placement, _, scheme = self.label.partition(" ")
        await self._system.ask("PUT", "/policies", self._experiment.policies(placement, scheme))
        self._began_at = time.time()
        self._past = [(b["load"]["model_in_per_s"], b["load"]["model_out_per_s"]) for b in await self._brokers()]

    def act(self, event: Event) -> None:
        """Have somebody do what the scenario says, one thing after the other for each."""
        person, wanted = self._people[event.payload["user"]], event.payload
        match event.kind:
            case "login":
                work: Awaitable[None] = person.arrive(self._where.get(person.name))
            case "logout":
                work = person.leave()
            case "subscribe":
                work = person.subscribe(Intent(**wanted))
            case _:
                work = person.unsubscribe(Intent(**wanted))
        task = asyncio.create_task(self._in_turn(person, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def sample(self, run_s: float, progress: float) -> None:
        """Loads are averages that fade: of what an earlier run left in them, we know how much is still there."""
        now, told = time.time(), await self._brokers()
        rest = math.exp(-(now - self._began_at) / self._experiment.window_s)
        past = [(received * rest, sent * rest) for received, sent in self._past]
        self._samples.append(Sample.of(run_s, now, progress, told, past))

    async def _brokers(self) -> list[dict[str, Any]]:
        found = (await self._system.ask("GET", "/brokers"))["brokers"]
        by_name = {broker["name"]: broker for broker in found}
        return [by_name[name] for name in self._system.brokers]

    async def notes(self, held_s: float) -> Notes:
        ask, people = self._system.ask, self._people.values()
        decisions = (await ask("GET", f"/decisions?limit={KEPT}"))["decisions"]
        moves = (await ask("GET", f"/moves?limit={KEPT}"))["moves"]
        if not self._samples:
            raise Unavailable("the coordinator told no loads")
        return Notes(
            label=self.label,
            brokers=self._system.brokers,
            began_at=self._began_at,
            samples=self._samples,
            decisions=[decision for decision in decisions if decision["at"] >= self._began_at],
            moves=[move for move in moves if move["created_at"] >= self._began_at],
            loads=await ask("GET", "/loads"),
            handovers=list(self._handovers),
            notifications=sum(person.notifications for person in people),
            gaps=sum(person.gaps for person in people),
            holes=sum(person.holes for person in people),
            breaks=sum(person.breaks for person in people),
            held_s=held_s,
            problems=[*self._problems, *(problem for person in people for problem in person.problems)],
        )

    async def clear(self) -> None:
        """Everybody goes and is forgotten."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._system.ask("PUT", "/policies", {"balancing": {}})
        await asyncio.gather(*(self._in_turn(person, self._forget(person)) for person in self._people.values()))
        async with asyncio.timeout(EMPTY_S):
            while (await self._system.ask("GET", "/loads"))["users"]:
                await asyncio.sleep(LOOK_S)

    async def _in_turn(self, person: Person, work: Awaitable[None]) -> None:
        try:
            async with self._turns.setdefault(person.name, asyncio.Lock()), self._doors:
                await work
        except (TocsinError, TimeoutError) as problem:
            self._problems.append(f"{person.name}: {str(problem) or type(problem).__name__}")

    async def _forget(self, person: Person) -> None:
        await person.leave()
        await self._system.ask("DELETE", f"/users/{person.name}")

    def _person(self, name: str, token: str) -> Person:
        return Person(name, token, self._system.url, self._handovers)
