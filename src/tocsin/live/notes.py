"""What a run left, and the trace that it makes: the same form that the simulator's runs have.

Loads are the brokers' own moving averages, as they reported them to the coordinator, by second of the city; a
migration counts when it was done, by the plan that wanted it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tocsin.lab.trace import Decided, Trace
from tocsin.live.experiment import Experiment
from tocsin.live.handover import Handover
from tocsin.policies.multistage.framework import Action
from tocsin.policies.multistage.plan import Reason
from tocsin.policies.multistage.snapshot import Floats, Ints

Past = tuple[float, float]  # bytes a second in and out
CHECK_S = 10  # of the city, between numbers of subscribers
DONE = "done"


@dataclass(frozen=True, slots=True)
class Sample:
    """By broker, ``t`` seconds of the run after it began, ``at`` on the clock.

    A busy machine slows a run down: ``progress`` is how much of its time passed in a second of the clock, averaged
    as the brokers average their loads, so that a load by it is one of the run's own seconds.
    """

    t: float
    at: float
    progress: float
    received: list[float]
    sent: list[float]
    online: list[int]

    @classmethod
    def of(
        cls, t: float, at: float, progress: float, brokers: list[dict[str, Any]], past: Sequence[Past] = ()
    ) -> Sample:
        """``past`` is what is left of an earlier run, by broker."""
        loads = [broker["load"] for broker in brokers]
        received, sent = zip(*past, strict=True) if past else ([0.0] * len(loads),) * 2
        return cls(
            *(t, at, progress),
            [max(0.0, load["model_in_per_s"] - old) / progress for load, old in zip(loads, received, strict=True)],
            [max(0.0, load["model_out_per_s"] - old) / progress for load, old in zip(loads, sent, strict=True)],
            [broker["online"] for broker in brokers],
        )


@dataclass(frozen=True)
class Notes:
    """``holes`` were told by nobody; ``held_s`` is by how much a busy machine slowed it down."""

    label: str
    brokers: list[str]
    began_at: float
    samples: list[Sample]
    decisions: list[dict[str, Any]]
    moves: list[dict[str, Any]]
    loads: dict[str, Any]
    handovers: list[Handover]
    notifications: int
    gaps: int = 0
    holes: int = 0
    breaks: int = 0
    held_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def done(self) -> list[dict[str, Any]]:
        return [move for move in self.moves if move["state"] == DONE]

    def trace(self, experiment: Experiment) -> Trace:
        seconds = np.arange(1, experiment.city_s + 1)
        at = np.array([sample.t for sample in self.samples]) * experiment.speed
        received = _between(seconds, at, [sample.received for sample in self.samples]) / experiment.speed
        sent = _between(seconds, at, [sample.sent for sample in self.samples]) / experiment.speed
        online = _between(seconds[CHECK_S - 1 :: CHECK_S], at, [sample.online for sample in self.samples])
        held = [stream for user in self.loads["users"] for stream in user["streams"]]
        upstream = {(user["broker"], stream) for user in self.loads["users"] for stream in user["streams"]}
        empty = np.zeros((0, len(self.brokers)))
        return Trace(
            *(CHECK_S, 1, received, sent, np.rint(online).astype(np.int64), self._moved(experiment)),
            decided=self._decided(experiment),
            made=self._made(),
            fetches=0,
            deliveries=self.notifications,
            frontend=len(held),
            backend=len(set(held)),
            upstream=len(upstream),
            queued=empty,
            waited=empty,
        )

    def _moved(self, experiment: Experiment) -> Ints:
        moved = np.zeros(experiment.city_s, np.int64)
        for move in self.done:
            moved[self._second(move["ended_at"], experiment)] += 1
        return moved

    def _made(self) -> Counter[Action]:
        by_plan = {decision["plan"]: Action(decision["action"]) for decision in self.decisions}
        return Counter(by_plan[move["plan"]] for move in self.done if move["plan"] in by_plan)

    def _decided(self, experiment: Experiment) -> tuple[Decided, ...]:
        return tuple(
            Decided(
                self._second(decision["at"], experiment),
                Action(decision["action"]),
                Reason(decision["reason"]),
                decision["moves"],
                decision["before"]["cov"],
                decision["after"]["cov"],
                decision["before"]["maximum"] / experiment.speed,
                decision["after"]["maximum"] / experiment.speed,
                tuple(Reason(one["reason"]) for one in decision["discarded"]),
            )
            for decision in reversed(self.decisions)
            if decision["plan"]
        )

    def _second(self, at: float, experiment: Experiment) -> int:
        """Of the city, at a time of the clock."""
        t = np.interp(at, [sample.at for sample in self.samples], [sample.t for sample in self.samples])
        return min(max(int(t * experiment.speed), 0), experiment.city_s - 1)


def _between(seconds: Ints, at: Floats, values: Sequence[Sequence[float]]) -> Floats:
    """``values`` by column, straight between the samples."""
    columns = np.array(values, float).T
    return np.column_stack([np.interp(seconds, at, column, left=0.0) for column in columns])
