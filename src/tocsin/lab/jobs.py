"""Runs as values, so that they can be carried out here or elsewhere: a runner takes jobs and answers their traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from tocsin.lab.engine import Pace, simulate
from tocsin.lab.trace import Trace
from tocsin.lab.world import World
from tocsin.policies.base import PlacementPolicy
from tocsin.policies.multistage.framework import Framework


class Settings(Protocol):
    """A frozen dataclass that describes a world, so that equal ones are drawn once."""

    def world(self, seed: int) -> World: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Job:
    """One scheme in one world, as one seed has it."""

    settings: Settings
    placement: PlacementPolicy
    framework: Framework | None
    seed: int
    pace: Pace = field(default_factory=Pace)

    def run(self) -> Trace:
        return simulate(drawn(self.settings, self.seed), self.placement, self.framework, self.pace, self.seed)


Runner = Callable[[Sequence[Job]], list[Trace]]


def local(jobs: Sequence[Job]) -> list[Trace]:
    """One after the other in this process; those of the same world together, for it is drawn once."""
    order = sorted(range(len(jobs)), key=lambda at: (repr(jobs[at].settings), jobs[at].seed))
    found = {at: jobs[at].run() for at in order}
    return [found[at] for at in range(len(jobs))]


@lru_cache(maxsize=2)
def drawn(settings: Settings, seed: int) -> World:
    """Worlds are the same for the same arguments and are never changed."""
    return settings.world(seed)
