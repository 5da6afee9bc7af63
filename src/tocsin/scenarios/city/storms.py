"""Storms of hot districts, which skew the load: for a while most reports come from one district, and more of them.

There is one storm in every ``every_s``, at a moment and over a district of its own. The paper has none, and a scenario
has them only where they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.network import Ints
from tocsin.scenarios.city.world import City
from tocsin.scenarios.seeding import stream


@dataclass(frozen=True, slots=True)
class Storms:
    """Durations are of the scenario; while a storm lasts, reports come ``surge`` times as fast."""

    every_s: float = 300.0
    lasts_s: float = 120.0
    share: float = 0.8  # of a storm's reports, from its district
    surge: float = 2.0

    def __post_init__(self) -> None:
        if not (0 < self.lasts_s <= self.every_s and 0 <= self.share <= 1 and self.surge >= 1):
            expected = "lasts_s above 0 and at most every_s, a share from 0 to 1 and a surge from 1 on"
            raise BadArgument("storms", expected, self)


class Weather:
    """The storms of one city."""

    def __init__(self, storms: Storms, city: City, seed: int) -> None:
        self._storms, self._city, self._seed = storms, city, seed
        self._rng = stream(seed, "reports of storms")
        self._storm = cache(self._draw)
        self._points = cache(self._points_of)

    def hot(self, t: float) -> int | None:
        """The number of the district that is hot at ``t`` of the scenario, if one is."""
        began_s, district = self._storm(int(t // self._storms.every_s))
        return district if began_s <= t < began_s + self._storms.lasts_s else None

    def surge(self, t: float) -> float:
        """How many times as many reports come at ``t`` as usual."""
        return 1.0 if self.hot(t) is None else self._storms.surge

    def strike(self, t: float) -> int | None:
        """Where a report of ``t`` happens instead, as a point of the streets; None if it stays where it is."""
        district = self.hot(t)
        if district is None or self._rng.random() >= self._storms.share:
            return None
        points = self._points(district)
        homes = self._city.population[points]
        return int(self._rng.choice(points, p=homes / homes.sum()))

    def _draw(self, number: int) -> tuple[float, int]:
        rng, storms = stream(self._seed, f"storm {number}"), self._storms
        began_s = number * storms.every_s + float(rng.uniform(0.0, storms.every_s - storms.lasts_s))
        return began_s, int(rng.choice(np.unique(self._city.district_of_point)))

    def _points_of(self, district: int) -> Ints:
        return np.flatnonzero(self._city.district_of_point == district)
