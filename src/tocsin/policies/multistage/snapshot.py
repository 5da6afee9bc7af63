"""What a balancing policy sees: who is where, who wants what, and what it weighs (X, Y and R of section 4).

Subscribers, backend subscriptions and brokers are numbers, each from 0 on, because a plan for a million subscribers
is made by loops over arrays. Y is stored by subscriber: those of ``i`` are ``items[offsets[i]:offsets[i + 1]]``, in
rising order and each once, since frontend subscriptions of one user to the same thing count as one in equation 3.

Names are for the live system. ``from_names`` builds a snapshot from mappings; names are sorted first, so that the
order in which a coordinator heard of things does not change a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class BadSnapshot(ValueError):
    """The arrays do not describe a world; the sentence says which of them and why."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """``rates`` are bytes a second by backend subscription, ``assigned`` the broker of each subscriber.

    ``capacities`` weigh brokers against each other; all 1 makes them equal, as the paper has them. A ``pinned``
    subscriber stays where it is: it was moved a moment ago, or cannot be moved.
    """

    offsets: Ints
    items: Small
    rates: Floats
    assigned: Small
    capacities: Floats
    pinned: Flags = field(default_factory=lambda: np.zeros(0, bool))
    subscribers: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        as_arrays = {"offsets": np.int64, "items": np.int32, "rates": np.float64, "assigned": np.int32}
        for name, kind in (as_arrays | {"capacities": np.float64, "pinned": np.bool_}).items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), kind))
        if len(self.pinned) == 0:
            object.__setattr__(self, "pinned", np.zeros(len(self.assigned), bool))
        _check(self)

    @property
    def n(self) -> int:
        """Subscribers."""
        return len(self.assigned)

    @property
    def q(self) -> int:
        """Backend subscriptions."""
        return len(self.rates)

    @property
    def m(self) -> int:
        """Brokers."""
        return len(self.capacities)

    def subscriber(self, i: int) -> str:
        return self.subscribers[i] if self.subscribers else str(i)

    def broker(self, j: int) -> str:
        return self.brokers[j] if self.brokers else str(j)

    @classmethod
    def from_names(
        cls,
        homes: Mapping[str, str],
        wants: Mapping[str, Set[Any]],
        rates: Mapping[Any, float],
        capacities: Mapping[str, float],
        pinned: Set[str] = frozenset(),
    ) -> Snapshot:
        """User → broker, user → keys of its backend subscriptions, key → bytes a second, broker → capacity.

        A key without a rate has not been measured and weighs nothing. A user who wants nothing may be left out of
        ``wants``. A user at a broker that is not among ``capacities`` is an error.
        """
        users, brokers, keys = sorted(homes), sorted(capacities), sorted(rates)
        number = {key: k for k, key in enumerate(keys)}
        place = {name: j for j, name in enumerate(brokers)}
        lost = [user for user in users if homes[user] not in place]
        if lost:
            raise BadSnapshot(f"user {lost[0]!r} is at {homes[lost[0]]!r}, expected one of {', '.join(brokers)}")
        rows = [sorted(number[key] for key in wants.get(user, ()) if key in number) for user in users]
        return cls(
            np.cumsum([0, *map(len, rows)]),
            np.fromiter((k for row in rows for k in row), np.int32),
            np.fromiter((rates[key] for key in keys), np.float64, len(keys)),
            np.fromiter((place[homes[user]] for user in users), np.int32, len(users)),
            np.fromiter((capacities[name] for name in brokers), np.float64, len(brokers)),
            np.fromiter((user in pinned for user in users), bool, len(users)),
            tuple(users),
            tuple(brokers),
        )


def _check(s: Snapshot) -> None:
    _expect(s.m > 0, "a snapshot needs a broker")
    _expect(len(s.offsets) == s.n + 1, f"offsets: expected {s.n + 1} for {s.n} subscribers, got {len(s.offsets)}")
    _expect(s.offsets[0] == 0 and s.offsets[-1] == len(s.items), f"offsets: expected 0 to {len(s.items)}")
    _expect(bool((np.diff(s.offsets) >= 0).all()), "offsets: expected to rise")
    _expect(_within(s.items, s.q), f"items: expected backend subscriptions from 0 to {s.q - 1}")
    _expect(_within(s.assigned, s.m), f"assigned: expected brokers from 0 to {s.m - 1}")
    _expect(bool((np.isfinite(s.rates) & (s.rates >= 0)).all()), "rates: expected finite bytes a second from 0")
    _expect(bool((np.isfinite(s.capacities) & (s.capacities > 0)).all()), "capacities: expected above 0 and finite")
    _expect(len(s.pinned) == s.n, f"pinned: expected {s.n} flags, got {len(s.pinned)}")
    _expect(not s.subscribers or len(s.subscribers) == s.n, f"subscribers: expected {s.n} names or none")
    _expect(not s.brokers or len(s.brokers) == s.m, f"brokers: expected {s.m} names or none")
    _expect(_rising(s), "items: expected those of a subscriber in rising order, each once")


def _expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise BadSnapshot(sentence)


def _within(values: Small, end: int) -> bool:
    return len(values) == 0 or bool(values.min() >= 0 and values.max() < end)


def _rising(s: Snapshot) -> bool:
    steps = np.diff(s.items) > 0
    starts = s.offsets[1:-1]
    starts = starts[(starts > 0) & (starts < len(s.items))]
    steps[starts - 1] = True
    return bool(steps.all())
