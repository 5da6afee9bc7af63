"""One seed from its beginning to its verdict."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tocsin.chaos.evaluate import Verdict, evaluate
from tocsin.chaos.evidence import Evidence, Wish
from tocsin.chaos.faults import Faults, wishes_of
from tocsin.chaos.journal import Journal
from tocsin.chaos.people import Person
from tocsin.chaos.schedule import Story
from tocsin.chaos.traffic import Traffic
from tocsin.chaos.world import PEOPLE_MAY, ClusterHost, World
from tocsin.errors import TocsinError

ARRIVE_S = 90.0
SETTLE_S = 60.0  # for what is on its way when the traffic has ended
ECHO_S = 1.0  # in which a double would still come
LOOK_S = 0.2
TWIN_EVERY = 3  # so many users have one with a second device
SCHEMA = """
CREATE ACTIVE DATASET Reports$ (source STRING, n INT, kind STRING, value DOUBLE);
CREATE CONTINUOUS CHANNEL ByKind$(kind STRING) AS SELECT r.source, r.n FROM Reports$ r WHERE r.kind = :kind;
CREATE CHANNEL Above$(bound DOUBLE) PERIOD '500ms' AS SELECT r.source, r.n FROM Reports$ r WHERE r.value > :bound;
"""  # $ is the seed


@dataclass(slots=True)
class SeedResult:
    seed: int
    verdict: Verdict
    faults: Counter[str]
    seconds: float
    journal: Path
    problems: list[str] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        return bool(self.problems) or not self.verdict.is_clean


async def run_seed(
    host: ClusterHost, story: Story, root: Path, echo: Callable[[str], None] | None = None
) -> SeedResult:
    """Play the story; never raises for what the system did wrong."""
    root.mkdir(parents=True)
    journal, began = Journal(root / "journal.jsonl", echo), time.monotonic()
    world = World(host, story, root, journal)
    stage = _Stage(world, story, journal)
    problems: list[str] = []
    try:
        await stage.set_up()
        await stage.play()
    except (TocsinError, TimeoutError) as problem:
        problems.append(f"the run stopped: {str(problem) or type(problem).__name__}")
        journal.tell("stopped", problem=str(problem))
    finally:
        verdict = await stage.end()
    problems += stage.problems()
    journal.note("verdict", problems=problems + verdict.problems, expected=verdict.expected)
    journal.close()
    return SeedResult(story.seed, verdict, stage.faults.done, time.monotonic() - began, journal.path, problems)


class _Stage:
    def __init__(self, world: World, story: Story, journal: Journal) -> None:
        seed = story.seed
        self._world, self._story, self._journal = world, story, journal
        self._rng = Random(f"tocsin-chaos-run-{seed}")
        self._names = {name: f"{name}{seed}" for name in ("Reports", "ByKind", "Above")}
        topics = [f"topic{n}" for n in range(story.topics)]
        kinds = [f"kind{n}" for n in range(story.kinds)]
        self._wishes: list[Wish] = wishes_of(topics, kinds)
        self._people = [self._person(f"s{seed}-u{number}") for number in range(story.people)]
        self._twins = {person: self._person(person.name, "-page") for person in self._people[::TWIN_EVERY]}
        self._people += self._twins.values()
        self._publisher, self._walker = self._person(f"s{seed}-publisher"), self._person(f"s{seed}-walker")
        self._traffic = Traffic(world, self._names["Reports"], topics, kinds, self._rng, journal)
        self._unheard: list[str] = []
        self.faults = Faults(world, self._people, self._traffic, self._wishes, self._rng, journal)

    def problems(self) -> list[str]:
        everyone = [*self._people, self._publisher, self._walker]
        silence = [f"{sender}: nothing was acknowledged any more when all was up" for sender in self._unheard]
        return self.faults.problems + silence + [problem for person in everyone for problem in person.problems]

    async def set_up(self) -> None:
        await asyncio.gather(self._prepare(), self._world.start())
        everyone = [*self._people, self._publisher, self._walker]
        async with asyncio.timeout(ARRIVE_S):
            await asyncio.gather(*(person.arrive() for person in everyone))
        for person in self._people[: self._story.people]:
            for number, wish in enumerate(self._rng.sample(self._wishes, k=self._rng.randint(1, 3))):
                self._subscribe(person, f"w{number}", wish)
        await self._until(lambda: all(i.stood is not None for p in self._people for i in p.intervals), ARRIVE_S)

    def _subscribe(self, person: Person, id: str, wish: Wish) -> None:
        """On the second device, too, where there is one: it is the same subscription of the same user."""
        person.subscribe(id, wish)
        if twin := self._twins.get(person):
            twin.subscribe(id, wish)
            person.shared.add(id)
            twin.shared.add(id)

    async def _prepare(self) -> None:
        await self._world.host.ensure()
        await self._world.statements(SCHEMA.replace("$", str(self._story.seed)))

    async def play(self) -> None:
        self._journal.tell("traffic begins", people=len(self._people))
        self._traffic.start(self._publisher, self._walker)
        began = time.monotonic()
        for step in self._story.steps:
            await asyncio.sleep(max(0.0, began + step.at_s - time.monotonic()))
            self.faults.strike(step)
        await asyncio.sleep(max(0.0, began + self._story.length_s - time.monotonic()))
        await self.faults.settle()
        self._journal.tell("everything is up")
        self._unheard = await self._traffic.unheard(SETTLE_S)
        async with asyncio.timeout(SETTLE_S):
            await self._traffic.stop()
        self._journal.tell("traffic ended", records=len(self._traffic.records), topics=len(self._traffic.publications))
        await self._until(lambda: self._verdict().is_complete, SETTLE_S)
        await asyncio.sleep(ECHO_S)

    async def end(self) -> Verdict:
        """What is to be said, with everything of this seed gone."""
        verdict = self._verdict()
        self._traffic.abandon()
        try:
            await self.faults.abandon()
            everyone = [*self._people, self._publisher, self._walker]
            await asyncio.gather(*(person.leave() for person in everyone), return_exceptions=True)
            await self._world.statements(_removal(self._names, self._world.brokers))
        except TocsinError as problem:
            self._journal.tell("not removed", problem=str(problem))
        finally:
            await self._world.stop()
        return verdict

    def _verdict(self) -> Verdict:
        self.faults.excuse()
        intervals = [interval for person in self._people for interval in person.intervals]
        return evaluate(Evidence(self._traffic.records, self._traffic.publications, intervals))

    def _person(self, name: str, device: str = "") -> Person:
        token = self._world.host.token(name, PEOPLE_MAY)
        return Person(name, self._world.coordinator_url, token, self._names, self._journal, device)

    async def _until(self, holds: Callable[[], bool], timeout_s: float) -> None:
        """Wait, but not for ever: what does not hold in time is found by the verdict."""
        deadline = time.monotonic() + timeout_s
        while not holds() and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_S)


def _removal(names: Mapping[str, str], brokers: Iterable[str]) -> str:
    drops = [f"DROP CHANNEL IF EXISTS {names[channel]} CASCADE" for channel in ("ByKind", "Above")]
    drops += [f"DROP DATASET IF EXISTS {names['Reports']}"]
    return "; ".join([*drops, *(f"DROP BROKER IF EXISTS `{name}`" for name in brokers)])
