"""What a run is about: brokers, people, who wants what from when on, and what the channels yield.

A world is drawn once from a seed and does not change: every scheme that is compared plays in the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tocsin.errors import BadArgument
from tocsin.policies.base import Point
from tocsin.policies.multistage.snapshot import Floats, Ints, Small


class Results(Protocol):
    """What the data cluster produces."""

    def at(self, second: int) -> Floats:
        """Bytes of new results by backend subscription at this second; 0 where no channel is due."""
        ...


@dataclass(frozen=True, eq=False)
class World:
    """``who`` wants ``what`` from second ``since`` on, sorted by both; ``logins`` are by subscriber and come first."""

    duration_s: int
    brokers: tuple[Point, ...]
    homes: Floats
    logins: Ints
    who: Small
    what: Small
    since: Ints
    q: int
    results: Results

    def __post_init__(self) -> None:
        keys = self.who.astype(np.int64) * self.q + self.what
        if len(keys) and not (np.diff(keys) > 0).all():
            raise BadArgument("world", "who and what in rising order, each pair once", "another order")
        if (self.since < self.logins[self.who]).any():
            raise BadArgument("world", "subscriptions after their user's login", "an earlier one")

    @property
    def n(self) -> int:
        """Subscribers."""
        return len(self.logins)

    @property
    def m(self) -> int:
        """Brokers."""
        return len(self.brokers)

    @cached_property
    def settled_s(self) -> int:
        """When the last subscription is made."""
        return int(self.since.max(initial=0))

    @cached_property
    def arrivals(self) -> tuple[Ints, Ints]:
        """The subscriptions in order of time, and where those of each second begin."""
        order = np.argsort(self.since, kind="stable")
        return order, np.searchsorted(self.since[order], np.arange(self.duration_s + 2))

    def rows(self, second: int) -> tuple[Ints, Small]:
        """Offsets and items of the subscriptions made until ``second``."""
        if second >= self.settled_s:
            return self._all_rows
        made = self.since <= second
        return _offsets(self.who[made], self.n), self.what[made]

    @cached_property
    def _all_rows(self) -> tuple[Ints, Small]:
        return _offsets(self.who, self.n), self.what


def _offsets(who: Small, n: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(who, minlength=n))]).astype(np.int64)


def distinct_interests(sizes: Ints, q: int, rng: np.random.Generator) -> tuple[Small, Small]:
    """``sizes[i]`` different ones of ``q`` for each ``i``, all equally likely: who and what, sorted."""
    if sizes.max(initial=0) > q:
        raise BadArgument("subscriptions", f"at most the {q:,} that there are", int(sizes.max()))
    who = np.repeat(np.arange(len(sizes)), sizes)
    keys = np.sort(who * q + rng.integers(0, q, len(who)))
    while len(again := np.flatnonzero(keys[1:] == keys[:-1]) + 1):
        fresh = keys[again] // q * q + rng.integers(0, q, len(again))
        keys = np.sort(np.concatenate([np.delete(keys, again), fresh]), kind="stable")  # quick on what is nearly sorted
    return (keys // q).astype(np.int32), (keys % q).astype(np.int32)
