"""What happens in a run, from its seed alone. Nothing here acts.

Whom a step strikes is a number that the run reduces to those who are there at that moment: the same seed makes
the same story, as far as the machine lets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random


class Kind(StrEnum):
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    CUT = "cut"  # a connection breaks
    LEAVE = "leave"  # an application ends, and another one goes on for its user
    SLOW_READER = "slow_reader"
    MOVE = "move"
    SHUFFLE = "shuffle"
    DRAIN = "drain"
    KILL_BROKER = "kill_broker"
    KILL_COORDINATOR = "kill_coordinator"
    KILL_CLUSTER = "kill_cluster"


WEIGHTS = {
    Kind.SUBSCRIBE: 4,
    Kind.UNSUBSCRIBE: 3,
    Kind.CUT: 3,
    Kind.LEAVE: 3,
    Kind.SLOW_READER: 2,
    Kind.MOVE: 4,
    Kind.SHUFFLE: 2,
    Kind.DRAIN: 1,
    Kind.KILL_BROKER: 2,
    Kind.KILL_COORDINATOR: 2,
}
SURE = (Kind.KILL_BROKER, Kind.KILL_COORDINATOR, Kind.DRAIN, Kind.SHUFFLE, Kind.KILL_CLUSTER)  # one a seed, in turn
LENGTH_S = 9.0
BLOWS, BLOW_S = 0.4, 0.4  # so many moves are hit half-way, within so long after they began
QUIET_S = 1.0  # at the beginning, with traffic and without faults


@dataclass(frozen=True, slots=True)
class Step:
    """``whom`` picks among those who are there; ``lasts_s`` is how long what it strikes stays away."""

    at_s: float
    kind: Kind
    whom: int
    lasts_s: float


@dataclass(frozen=True, slots=True)
class Story:
    seed: int
    brokers: int
    people: int
    topics: int
    kinds: int
    steps: tuple[Step, ...]
    length_s: float = LENGTH_S


def story(seed: int, *, length_s: float = LENGTH_S) -> Story:
    rng = Random(f"tocsin-chaos-{seed}")
    drawn = rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=rng.randint(7, 12))
    steps = [_step(rng, kind, length_s) for kind in [*drawn, SURE[seed % len(SURE)]]]
    steps += [_blow(rng, step) for step in steps if step.kind in (Kind.MOVE, Kind.SHUFFLE) and rng.random() < BLOWS]
    return Story(
        seed=seed,
        brokers=3,
        people=rng.randint(5, 9),
        topics=rng.randint(2, 4),
        kinds=rng.randint(2, 4),
        steps=tuple(sorted(steps, key=lambda step: step.at_s)),
        length_s=length_s,
    )


def _step(rng: Random, kind: Kind, length_s: float) -> Step:
    at_s = rng.uniform(QUIET_S, length_s)
    return Step(round(at_s, 3), kind, rng.randrange(1 << 30), round(rng.uniform(0.2, 4.0), 3))


def _blow(rng: Random, move: Step) -> Step:
    """Something that goes wrong while people are on their way."""
    kind = rng.choice((Kind.KILL_BROKER, Kind.KILL_COORDINATOR, Kind.CUT, Kind.LEAVE))
    at_s = move.at_s + rng.uniform(0, BLOW_S)
    return Step(round(at_s, 3), kind, rng.choice((move.whom, rng.randrange(1 << 30))), round(rng.uniform(0.2, 4.0), 3))


def seeds_of(text: str) -> range | None:
    """``"3:7"`` is 3 to 7, both included; ``"3"`` is 3 alone; None if it is neither."""
    first, colon, last = text.partition(":")
    if not first.isdecimal() or (colon and not last.isdecimal()):
        return None
    found = range(int(first), int(last if colon else first) + 1)
    return found if found else None
