"""Who subscribes to what: 1 to 5 channels each, 1 to 3 subscriptions a channel (paper, section 6.1.2).

Subscriptions name popular places and kinds more often, by Zipf's law with exponent ``sharing``, so
that many are identical. With the default, 400 subscribers on seven channels make about 2,200
subscriptions with about 600 distinct parameter sets, as the paper reports. Where a channel has only
the user as a parameter, more than one subscription to it would be the same one, and there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.scenarios.city.channels import CHANNELS, Channel
from tocsin.scenarios.city.emergencies import KINDS
from tocsin.scenarios.city.world import City
from tocsin.scenarios.seeding import stream

SHARING = 1.5
_RADII_M = (500.0, 1_000.0, 2_000.0)
_DRAWS = 3  # for each subscription, to find one that the user does not have yet


@dataclass(frozen=True, slots=True)
class Intent:
    """A user wants a subscription; ``args`` are the channel's parameters by name."""

    user: str
    channel: str
    args: dict[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for subscriptions that can share a backend subscription."""
        return (self.channel, *sorted(self.args.items()))


def user_name(number: int) -> str:
    return f"u{number:05d}"


def subscribers(
    city: City, count: int, seed: int, channels: Sequence[Channel] = CHANNELS, sharing: float = SHARING
) -> Iterator[Intent]:
    """What users 0 to ``count`` - 1 subscribe to, user by user."""
    if count < 0 or not channels or not sharing >= 0:
        raise BadArgument("subscribers", "a number from 0 on, some channels, sharing from 0 on", (count, sharing))
    wishes = _Wishes(city, sharing, stream(seed, "subscribers"))
    for number in range(count):
        yield from wishes.of(user_name(number), channels)


class _Wishes:
    def __init__(self, city: City, sharing: float, rng: np.random.Generator) -> None:
        self._rng, self._places = rng, city.places
        self._place_shares = _zipf(len(city.places), sharing)
        self._kind_shares = _zipf(len(KINDS), sharing / 2)

    def of(self, user: str, channels: Sequence[Channel]) -> Iterator[Intent]:
        """One to five channels by their appeal, and distinct wishes on each."""
        appeal = np.array([channel.appeal for channel in channels])
        count = min(int(self._rng.integers(1, 6)), len(channels))
        for i in self._rng.choice(len(channels), size=count, replace=False, p=appeal / appeal.sum()):
            yield from self._on(user, channels[i])

    def _on(self, user: str, channel: Channel) -> Iterator[Intent]:
        names = [name for name, _ in channel.parameters]
        count, wishes = int(self._rng.integers(1, 4)), dict[tuple[Any, ...], Intent]()
        for _ in range(_DRAWS * count):
            intent = Intent(user, channel.name, self._args(user, names))
            if len(wishes) < count:
                wishes.setdefault(intent.key, intent)
        yield from wishes.values()

    def _args(self, user: str, names: list[str]) -> dict[str, Any]:
        place = int(self._rng.choice(len(self._places), p=self._place_shares))
        values = {
            "user": user,
            "kind": KINDS[self._rng.choice(len(KINDS), p=self._kind_shares)],
            "severity": int(self._rng.integers(3, 6)),
            "x": self._places[place].x,
            "y": self._places[place].y,
            "radius": _RADII_M[place % len(_RADII_M)],
        }
        return {name: values[name] for name in names}


def _zipf(count: int, exponent: float) -> NDArray[np.float64]:
    weight = np.arange(1, count + 1) ** -float(exponent)
    shares: NDArray[np.float64] = weight / weight.sum()
    return shares
