"""Carrying out the steps of a story on a running system."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from itertools import combinations
from random import Random

from tocsin.broker.upstream.topics import owner_of
from tocsin.chaos.evidence import Above, ByKind, Topic, Wish
from tocsin.chaos.journal import Journal
from tocsin.chaos.people import Person
from tocsin.chaos.schedule import Kind, Step
from tocsin.chaos.traffic import Traffic
from tocsin.chaos.world import World
from tocsin.errors import TocsinError

BURST, BURST_BYTES = 120, 60_000
BURST_TOPIC = "burst"


class Faults:
    """``done`` counts what was really done: a step that finds nobody to strike is skipped."""

    def __init__(
        self, world: World, people: list[Person], traffic: Traffic, wishes: list[Wish], rng: Random, journal: Journal
    ) -> None:
        self._world, self._people, self._traffic, self._wishes = world, people, traffic, wishes
        self._rng, self._journal = rng, journal
        self.done: Counter[str] = Counter()
        self.orphaned: set[str] = set()  # topics whose owner was killed
        self.problems: list[str] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._ids = 0
        self._acts = {
            Kind.SUBSCRIBE: self._subscribe,
            Kind.UNSUBSCRIBE: self._unsubscribe,
            Kind.CUT: self._cut,
            Kind.LEAVE: self._leave,
            Kind.SLOW_READER: self._slow_reader,
            Kind.MOVE: self._move,
            Kind.SHUFFLE: self._shuffle,
            Kind.DRAIN: self._drain,
            Kind.KILL_BROKER: self._kill_broker,
            Kind.KILL_COORDINATOR: self._kill_coordinator,
            Kind.KILL_CLUSTER: self._kill_cluster,
        }

    def strike(self, step: Step) -> None:
        """Begin a step; it ends by itself, with what it struck in order again."""
        task = asyncio.create_task(self._carry_out(step))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settle(self) -> None:
        """Wait until every step has ended."""
        while self._under_way:
            await asyncio.gather(*self._under_way)

    async def abandon(self) -> None:
        """End every step where it is: none may start anything again."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _carry_out(self, step: Step) -> None:
        try:
            if await self._acts[step.kind](step):
                self.done[step.kind.value] += 1
            else:
                self._journal.tell("skipped", kind=step.kind.value)
        except TocsinError as problem:
            self._journal.tell("failed", kind=step.kind.value, problem=str(problem))
            self.problems.append(f"{step.kind.value}: {problem}")

    # --- people -----------------------------------------------------------------------------------------------

    async def _subscribe(self, step: Step) -> bool:
        person = self._person(step)
        self._ids += 1
        wish = self._wishes[step.whom % len(self._wishes)]
        self._journal.tell("subscribe", user=person.label, wish=str(wish))
        person.subscribe(f"x{self._ids}", wish)
        return True

    async def _unsubscribe(self, step: Step) -> bool:
        person = self._person(step)
        own = sorted(person.held.keys() - person.shared)
        if not own:
            return False
        id = own[step.whom % len(own)]
        wish = person.held[id].wish
        self._journal.tell("unsubscribe", user=person.label, id=id)
        async with person.lock:
            if id not in person.held:
                return False
            await person.unsubscribe(id)
            if step.whom % 3 == 0 and id not in person.held:  # the same id, at once again
                person.subscribe(id, wish)
        return True

    async def _cut(self, step: Step) -> bool:
        person = self._person(step)
        self._journal.tell("cut", user=person.label)
        person.cut()
        return True

    async def _leave(self, step: Step) -> bool:
        person = self._person(step)
        if person.lock.locked():
            return False
        async with person.lock:
            self._journal.tell("leave", user=person.label, lasts_s=step.lasts_s)
            await person.leave()
            await asyncio.sleep(step.lasts_s)
            await person.arrive()
            self._journal.tell("returned", user=person.label)
        return True

    async def _slow_reader(self, step: Step) -> bool:
        """One who does not read, while more comes than anybody keeps for it."""
        person = self._person(step)
        if person.lock.locked():
            return False
        async with person.lock:
            self._journal.tell("slow reader", user=person.label, lasts_s=step.lasts_s)
            self._ids += 1
            person.subscribe(f"burst{self._ids}", Topic(BURST_TOPIC))
            await asyncio.sleep(0.3)
            person.pause()
            await asyncio.gather(self._traffic.burst(BURST_TOPIC, BURST, BURST_BYTES), asyncio.sleep(step.lasts_s))
            person.resume()
            self._journal.tell("reads again", user=person.label)
        return True

    # --- the coordinator's moves ----------------------------------------------------------------------------------

    async def _move(self, step: Step) -> bool:
        return await self._plan([self._person(step)], step)

    async def _shuffle(self, step: Step) -> bool:
        return await self._plan(self._people, step)

    async def _plan(self, people: list[Person], step: Step) -> bool:
        serving = self._world.serving()
        if not serving:
            return False
        choose = Random(step.whom)
        users = dict.fromkeys(person.name for person in people)  # who has two devices moves with both
        moves = [{"user": user, "to": choose.choice(serving), "reason": "chaos"} for user in users]
        self._journal.tell(step.kind.value, moves={move["user"]: move["to"] for move in moves})
        try:
            await self._world.ask("POST", f"{self._world.coordinator_url}/plans", json={"moves": moves})
        except TocsinError as problem:  # it may be dead at this moment
            self._journal.tell("not planned", problem=str(problem))
            return False
        return True

    # --- processes ------------------------------------------------------------------------------------------------

    async def _drain(self, step: Step) -> bool:
        name = self._broker(step)
        if name is None:
            return False
        self._journal.tell("drain", broker=name)
        code = await self._world.drain(name)
        if code not in (0, -9, -15):  # it was killed meanwhile, or had not begun to listen
            self.problems.append(f"{name} ended its drain with code {code}")
        await asyncio.sleep(step.lasts_s)
        await self._world.restart(name)
        return True

    async def _kill_broker(self, step: Step) -> bool:
        name = self._broker(step)
        if name is None:
            return False
        self._orphan(name)
        self._world.leaving.add(name)
        await self._world.kill(name)
        await asyncio.sleep(step.lasts_s * 1.5)
        await self._world.restart(name)
        return True

    async def _kill_coordinator(self, step: Step) -> bool:
        if not self._world.is_running("coordinator"):
            return False
        await self._world.kill("coordinator")
        await asyncio.sleep(step.lasts_s)
        await self._world.restart("coordinator")
        return True

    async def _kill_cluster(self, step: Step) -> bool:
        self._journal.tell("kill cluster")
        await self._world.host.kill()
        await asyncio.sleep(step.lasts_s / 2)
        await self._world.host.ensure()
        self._journal.tell("cluster is back")
        return True

    def _orphan(self, name: str) -> None:
        """Note which topics ``name`` may own, whatever the others believe of who lives."""
        topics = {wish.name for wish in self._wishes if isinstance(wish, Topic)} | {BURST_TOPIC}
        self.orphaned |= may_own(name, self._world.brokers, self._world.unsteady, topics)

    def excuse(self) -> None:
        """Let followers of topics whose owner died have been told of it."""
        for interval in (interval for person in self._people for interval in person.intervals):
            if isinstance(interval.wish, Topic) and interval.wish.name in self.orphaned:
                interval.excused.add("owner")

    def _person(self, step: Step) -> Person:
        return self._people[step.whom % len(self._people)]

    def _broker(self, step: Step) -> str | None:
        """One that serves, while another one does so as well."""
        serving = self._world.serving()
        return serving[step.whom % len(serving)] if len(serving) > 1 else None


def may_own(name: str, brokers: Sequence[str], unsteady: Set[str], topics: Iterable[str]) -> set[str]:
    """Topics that ``name`` may stamp: brokers that were ever away may be among those who share topics out, or not."""
    steady = [broker for broker in brokers if broker == name or broker not in unsteady]
    others = sorted((unsteady & set(brokers)) - {name})
    views = [[*steady, *some] for count in range(len(others) + 1) for some in combinations(others, count)]
    return {topic for topic in topics if any(owner_of(topic, view) == name for view in views)}


def wishes_of(topics: list[str], kinds: list[str]) -> list[Wish]:
    return [*map(Topic, topics), *map(ByKind, kinds), Above(50.0), Above(80.0)]
