"""What a balancing policy answers: net moves, how it ended, and why.

A plan holds arrays, because a shuffle of a million subscribers moves nearly all of them. What explains it (each
move's loads, the summaries) is computed when it is asked for, by doing the moves in order on a load model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from random import Random
from typing import Protocol

import numpy as np

from tocsin.policies.multistage import counting
from tocsin.policies.multistage.bounds import lower_bound
from tocsin.policies.multistage.load import LoadModel, weights
from tocsin.policies.multistage.snapshot import Floats, Ints, Small, Snapshot


class Status(StrEnum):
    """How a plan ended."""

    DONE = "done"
    STALLED = "stalled"
    NOTHING = "nothing"
    DISCARDED = "discarded"


class Reason(StrEnum):
    """Why a subscriber moves, why one does not, why a plan ended; the same words label metrics."""

    TO_LIGHTEST = "to the least loaded"
    TO_SIMILAR = "to the most similar"
    BEST_FIT = "best fit"
    SWAPPED = "swapped"
    WITH_GROUP = "with its group"
    SHUFFLED = "shuffled"

    OVER_SOURCE = "target would reach the source"
    NO_LOAD = "carries no load"
    PINNED = "rests after a move"
    AT_HOME = "stays where it is"
    NO_GAIN = "would not pay"
    NONE_ACCEPTS = "no broker accepts"

    BALANCED = "balanced already"
    REACHED = "balance reached"
    FILLED = "all assigned"
    UNCHANGED = "nobody changes place"
    NO_VALID_MOVE = "no valid move"
    MOVE_LIMIT = "limit of moves"
    ONE_BROKER = "one broker"
    IDLE = "no load"
    RAISES_MAXIMUM = "would raise the maximum"
    TOO_LITTLE_GAIN = "would gain too little"
    COOLING_DOWN = "cooling down"
    LOW_COV = "cov within its threshold"
    LOW_LOAD = "mean load within its threshold"


@dataclass(frozen=True, slots=True)
class Move:
    """One subscriber from broker to broker; loads are bytes a second of each, before and after this move.

    ``maximum`` and ``cov`` are those of all brokers after it.
    """

    subscriber: str
    source: str
    target: str
    reason: Reason
    source_before: float
    target_before: float
    source_after: float
    target_after: float
    maximum: float
    cov: float


@dataclass(frozen=True, slots=True)
class Summary:
    """``maximum`` and ``bound`` are levels (load by capacity), ``mean`` and ``total`` bytes a second."""

    maximum: float
    mean: float
    cov: float
    total: float
    bound: float

    @property
    def ratio(self) -> float:
        """How far the maximum is above the least that could be; 1 where nothing flows."""
        return self.maximum / self.bound if self.bound > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Plan:
    """``order`` has each subscriber that moves, once; ``targets`` its broker then; ``reasons`` index ``Reason``.

    ``rejected`` counts the candidates that were looked at and refused, by reason.
    """

    policy: str
    status: Status
    reason: Reason
    snapshot: Snapshot = field(repr=False)
    order: Ints = field(repr=False)
    targets: Ints = field(repr=False)
    reasons: Ints = field(repr=False)
    rejected: Mapping[Reason, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.order)

    @cached_property
    def assigned(self) -> Small:
        """Everyone's broker after the plan."""
        after = self.snapshot.assigned.copy()
        after[self.order] = self.targets
        return after

    @cached_property
    def before(self) -> Summary:
        return _summary(LoadModel(self.snapshot), self._bound)

    @cached_property
    def after(self) -> Summary:
        return _summary(LoadModel(self.snapshot, self.assigned), self._bound)

    @cached_property
    def _bound(self) -> float:
        return lower_bound(self.snapshot)

    def moves(self) -> Iterator[Move]:
        """In order, each explained."""
        s, model = self.snapshot, LoadModel(self.snapshot)
        seen = np.zeros((len(self), counting.SEEN))
        counting.replay(
            *(self.order, self.targets, s.offsets, s.items, s.rates, weights(s), s.capacities),
            *(model.assigned, model.counts, model.loads, seen.ravel()),
        )
        for i, target, reason, row in zip(self.order, self.targets, self.reasons, seen.tolist(), strict=True):
            yield Move(s.subscriber(i), s.broker(s.assigned[i]), s.broker(target), REASONS[reason], *row)


class BalancingPolicy(Protocol):
    """A frozen dataclass whose fields are the algorithm's parameters; the same arguments give the same plan."""

    def plan(self, snapshot: Snapshot, rng: Random, now: float) -> Plan:
        """Net moves of subscribers that are not pinned. It always ends, and says how."""
        ...


REASONS = tuple(Reason)


def code(reason: Reason) -> int:
    """What kernels write for a reason."""
    return REASONS.index(reason)


def net_plan(
    policy: str,
    snapshot: Snapshot,
    ended: tuple[Status, Reason],
    assigned: Small,
    steps: Ints | None = None,
    why: Ints | Reason = Reason.SHUFFLED,
    rejected: Mapping[Reason, int] | None = None,
) -> Plan:
    """The plan from one assignment to another. Whoever moved and came back does not move (settled: line 18 of
    Algorithm 1 would overwrite). ``steps`` are subscribers as they moved, with ``why`` each; the last time counts."""
    steps = np.arange(snapshot.n) if steps is None else steps
    last = np.empty(snapshot.n, np.int64)
    last[steps] = np.arange(len(steps))
    counts = (last[steps] == np.arange(len(steps))) & (assigned[steps] != snapshot.assigned[steps])
    moved = steps[counts]
    reasons = np.full(len(moved), code(why)) if isinstance(why, Reason) else why[counts]
    if len(moved) == 0 and ended[0] is Status.DONE:
        ended = (Status.NOTHING, Reason.UNCHANGED)
    status, reason = ended
    kept = {name: count for name, count in (rejected or {}).items() if count}
    return Plan(policy, status, reason, snapshot, moved, assigned[moved].astype(np.int64), reasons, kept)


def shuffle_plan(policy: str, snapshot: Snapshot, sent: Floats, assigned: Small, order: Ints | None = None) -> Plan:
    """The plan of a policy that assigns everybody anew; whom it leaves is refused, with why."""
    stays = (assigned == snapshot.assigned) & (sent > 0)
    left = {
        Reason.PINNED: int(snapshot.pinned.sum()),
        Reason.NO_LOAD: int((~snapshot.pinned & (sent <= 0)).sum()),
        Reason.AT_HOME: int((~snapshot.pinned & stays).sum()),
    }
    return net_plan(policy, snapshot, (Status.DONE, Reason.FILLED), assigned, order, Reason.SHUFFLED, left)


def nothing(policy: str, snapshot: Snapshot, reason: Reason) -> Plan:
    """The plan that moves nobody."""
    return net_plan(policy, snapshot, (Status.NOTHING, reason), snapshot.assigned)


def _summary(model: LoadModel, bound: float) -> Summary:
    return Summary(model.maximum, model.mean, model.cov, model.total, bound)
