"""Nearest broker (NR; section 5.1): by measured latency, else by distance.

The paper leaves open which of the two. A latency says more, so brokers whose latency the client measured come
before those that are only near on the map. Ties go to the first name. A newcomer of whom neither is known gets
the broker with the fewest users.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from tocsin.policies.base import Assign, Decision, Newcomer, PlacementView, Point, Reason, fewest_users

EARTH_RADIUS_M = 6_371_008.8


@dataclass(frozen=True, slots=True)
class Nearest:
    """``metric`` says what locations are: (x, y) on a plane, or (longitude, latitude) on the sphere."""

    metric: Literal["plane", "sphere"] = "plane"

    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        measured = [(who.latencies_ms[b.name], b.name) for b in view.brokers if b.name in who.latencies_ms]
        if measured:
            return Assign(who.user, min(measured)[1], Reason.NEAREST_BY_LATENCY)
        distances = self._distances(who, view)
        if distances:
            return Assign(who.user, min(distances)[1], Reason.NEAREST_BY_DISTANCE)
        return fewest_users(who, view)

    def _distances(self, who: Newcomer, view: PlacementView) -> list[tuple[float, str]]:
        here = who.location
        if here is None:
            return []
        distance: Callable[[Point, Point], float] = math.dist if self.metric == "plane" else great_circle_m
        return [(distance(here, b.location), b.name) for b in view.brokers if b.location is not None]


def great_circle_m(one: Point, other: Point) -> float:
    """Metres between two (longitude, latitude), by the haversine formula, held to 0 and 1 against rounding."""
    (east, north), (east2, north2) = [(math.radians(x), math.radians(y)) for x, y in (one, other)]
    half = math.sin((north2 - north) / 2) ** 2
    half += math.cos(north) * math.cos(north2) * math.sin((east2 - east) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, max(0.0, half))))
