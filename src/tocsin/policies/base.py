"""What a placement policy sees and may answer.

A policy is a frozen dataclass whose fields are the parameters of its algorithm. It gets the world as a view,
chance as ``rng`` and time as ``now``, and keeps nothing: the same arguments give the same answer. Doing
nothing is an answer too, and every answer carries its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Protocol

Point = tuple[float, float]


class Reason(StrEnum):
    """Why a policy answered as it did; the same words label metrics."""

    NEAREST_BY_LATENCY = "nearest by latency"
    NEAREST_BY_DISTANCE = "nearest by distance"
    NEXT_IN_TURN = "next in turn"
    DRAWN = "drawn at random"
    LEAST_LOADED = "least loaded"
    FEWEST_USERS = "fewest users"
    NO_CANDIDATE = "no candidate"


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker that may take users. ``load`` is model bytes a second, in and out (equation 1 of the multistage paper).

    ``newcomers`` were placed on it since it last told its load, and are not in the load yet.
    """

    name: str
    location: Point | None = None
    load: float = 0.0
    users: int = 0
    newcomers: int = 0
    capacity: float | None = None


@dataclass(frozen=True, slots=True)
class PlacementView:
    """Candidates by name, each name once, and the broker that was chosen last."""

    brokers: tuple[BrokerView, ...]
    last: str | None = None


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Who wants a broker. ``latencies_ms`` are by broker, where the client measured them."""

    user: str
    location: Point | None = None
    latencies_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assign:
    user: str
    broker: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Skip:
    user: str
    reason: Reason


Decision = Assign | Skip


class PlacementPolicy(Protocol):
    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        """A broker of the view, or Skip where it has none."""
        ...


def usual_capacity(told: Iterable[float | None]) -> float:
    """Of a broker that does not tell its own: the average of those that do, so that it is like them."""
    known = [capacity for capacity in told if capacity is not None]
    return sum(known) / len(known) if known else 1.0


def fewest_users(who: Newcomer, view: PlacementView) -> Decision:
    """What policies fall back on that know nothing about the newcomer. Ties go to the first name."""
    if not view.brokers:
        return Skip(who.user, Reason.NO_CANDIDATE)
    chosen = min(view.brokers, key=lambda b: (b.users, b.name))
    return Assign(who.user, chosen.name, Reason.FEWEST_USERS)
