"""One run: the city's events in their time, on connections of everybody's own, while somebody takes notes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any

from tocsin.broker.metering import MovingRate
from tocsin.demo.pace import Pace
from tocsin.errors import TocsinError, Unavailable
from tocsin.live.experiment import Experiment
from tocsin.live.notes import Notes, Sample
from tocsin.live.person import Handover, Person
from tocsin.live.world import World
from tocsin.protocol.coordination import Placement
from tocsin.scenarios.city import Intent, records_of
from tocsin.scenarios.city.audience import user_name
from tocsin.scenarios.recording import Event

STEP_S = 0.1
SAMPLE_S = 0.5
LAG_S = 0.5
SLOWEST = 0.02  # progress below which a load says nothing
ACK_S = 5.0
EMPTY_S = 60.0
AT_ONCE = 64  # requests of people under way


class Stage:
    """``play`` once; ``clear`` leaves the world as it was found."""

    def __init__(self, world: World, experiment: Experiment, events: Sequence[Event], label: str) -> None:
        self._world, self._experiment, self._events, self._label = world, experiment, events, label
        self._handovers: list[Handover] = []
        self._where: dict[str, tuple[float, float]] = {}
        self._doors = asyncio.Semaphore(AT_ONCE)
        self._turns: dict[str, asyncio.Lock] = {}
        self.people = {name: self._person(name) for name in map(user_name, range(experiment.subscribers))}
        self._tasks: set[asyncio.Task[None]] = set()
        self._problems: list[str] = []
        self._samples: list[Sample] = []
        self._pace, self._lag_s = Pace(), 0.0
        self._progress = MovingRate(experiment.window_s, time.monotonic())

    async def play(self) -> Notes:
        placement, _, scheme = self._label.partition(" ")
        await self._world.coordinator("PUT", "/policies", self._experiment.policies(placement, scheme))
        began_at, began = time.time(), time.monotonic()
        helpers = [asyncio.create_task(work) for work in (self._sample(), self._acknowledge(), self._watch())]
        try:
            await self._feed(began)
        finally:
            for helper in helpers:
                helper.cancel()
        return await self._notes(began_at)

    async def clear(self) -> None:
        """Everybody goes and is forgotten."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._world.coordinator("PUT", "/policies", {"balancing": {}})
        await asyncio.gather(*(self._act(person, self._forget(person)) for person in self.people.values()))
        async with asyncio.timeout(EMPTY_S):
            while (await self._world.coordinator("GET", "/loads"))["users"]:
                await asyncio.sleep(SAMPLE_S)

    # --- what happens -------------------------------------------------------------------------------------------

    async def _feed(self, began: float) -> None:
        """Everything in its time, which goes slower while the channels are behind."""
        events, last = deque(self._events), began
        while self._pace.run_s < self._experiment.run_s:
            await asyncio.sleep(STEP_S)
            self._world.check()
            now = time.monotonic()
            before, run_s = self._pace.run_s, self._pace.advance(now - last, self._lag_s)
            self._progress.add(run_s - before, now)
            last, due = now, list[Event]()
            while events and events[0].t <= run_s:
                due.append(events.popleft())
            for dataset, records in _batches(due, self._begin):
                await self._world.append(dataset, records, f"{began:.3f}-{run_s:.3f}-{dataset}")
                if dataset == "UserLocations":
                    self._where = {record["user"]: (record["x"], record["y"]) for record in records}

    def _begin(self, event: Event) -> None:
        person, wanted = self.people[event.payload["user"]], event.payload
        match event.kind:
            case "login":
                work: Awaitable[None] = person.arrive()
            case "logout":
                work = person.leave()
            case "subscribe":
                work = person.subscribe(Intent(**wanted))
            case _:
                work = person.unsubscribe(Intent(**wanted))
        task = asyncio.create_task(self._act(person, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _act(self, person: Person, work: Awaitable[None]) -> None:
        """One after the other for each, not too many at once."""
        try:
            async with self._turns.setdefault(person.name, asyncio.Lock()), self._doors:
                await work
        except (TocsinError, TimeoutError) as problem:
            self._problems.append(f"{person.name}: {problem or type(problem).__name__}")

    async def _forget(self, person: Person) -> None:
        person.go()
        await self._world.coordinator("DELETE", f"/users/{person.name}")

    def _person(self, name: str) -> Person:
        return Person(name, self._world.token(name, "subscribe:*"), self._place, self._handovers)

    async def _place(self, user: str) -> Placement:
        return await self._world.place(user, self._where.get(user))

    # --- taking notes -------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            self._lag_s = await self._world.lag_s()
            await asyncio.sleep(LAG_S)

    async def _sample(self) -> None:
        while True:
            found = (await self._world.coordinator("GET", "/brokers"))["brokers"]
            by_name = {broker["name"]: broker for broker in found}
            progress = max(self._progress.value(time.monotonic()), SLOWEST)
            told = [by_name[name] for name in self._world.brokers]
            self._samples.append(Sample.of(self._pace.run_s, time.time(), progress, told))
            await asyncio.sleep(SAMPLE_S)

    async def _acknowledge(self) -> None:
        while True:
            await asyncio.sleep(ACK_S)
            for person in self.people.values():
                person.acknowledge()

    async def _notes(self, began_at: float) -> Notes:
        ask, people = self._world.coordinator, self.people.values()
        decisions = (await ask("GET", "/decisions?limit=10000"))["decisions"]
        moves = (await ask("GET", "/moves?limit=10000"))["moves"]
        if not self._samples:
            raise Unavailable("the coordinator told no loads")
        return Notes(
            label=self._label,
            brokers=list(self._world.brokers),
            began_at=began_at,
            samples=self._samples,
            decisions=[decision for decision in decisions if decision["at"] >= began_at],
            moves=[move for move in moves if move["created_at"] >= began_at],
            loads=await ask("GET", "/loads"),
            handovers=list(self._handovers),
            notifications=sum(person.notifications for person in people),
            gaps=sum(person.gaps for person in people),
            holes=sum(person.holes for person in people),
            breaks=sum(person.breaks for person in people),
            held_s=self._pace.held_s,
            problems=[*self._problems, *(problem for person in people for problem in person.problems)],
        )


def _batches(events: list[Event], act: Any) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Records by dataset, what reports are joined with first; what is none is done by ``act``."""
    found: dict[str, list[dict[str, Any]]] = {"Shelters": [], "UserLocations": [], "Reports": []}
    for event in events:
        if (brought := records_of(event)) is not None:
            found[brought[0]] += brought[1]
        else:
            act(event)
    yield from ((dataset, records) for dataset, records in found.items() if records)
