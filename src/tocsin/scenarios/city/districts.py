"""Districts of uneven density: each a hill of people, the first the highest, in the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.scenarios.city.names import district_names

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class District:
    name: str
    x: float
    y: float
    spread_m: float
    weight: float

    def density_at(self, x: Floats, y: Floats) -> Floats:
        squared = ((x - self.x) ** 2 + (y - self.y) ** 2) / self.spread_m**2
        return self.weight * np.exp(-squared / 2)


def generate_districts(count: int, size: tuple[float, float], rng: np.random.Generator) -> tuple[District, ...]:
    """A centre, and the others apart from each other: the best of some draws each."""
    width, height = size
    spots = [(width * rng.uniform(0.42, 0.58), height * rng.uniform(0.42, 0.58))]
    while len(spots) < count:
        draws = zip(rng.uniform(0.1, 0.9, 8) * width, rng.uniform(0.12, 0.88, 8) * height, strict=True)
        spots.append(max(draws, key=lambda draw: min(math.dist(draw, spot) for spot in spots)))
    names, scale = district_names(count), math.sqrt(width * height / 80e6)
    return tuple(_district(i, names[i], spot, scale, rng) for i, spot in enumerate(spots))


def _district(i: int, name: str, spot: tuple[float, float], scale: float, rng: np.random.Generator) -> District:
    if i == 0:
        return District(name, spot[0], spot[1], 1300.0 * scale, 1.0)
    return District(name, float(spot[0]), float(spot[1]), rng.uniform(450, 950) * scale, rng.uniform(0.2, 0.75))


def density(districts: Sequence[District], x: Floats, y: Floats) -> Floats:
    """People per area, relative: about 1 in the centre, near 0 outside."""
    return np.minimum(sum((d.density_at(x, y) for d in districts), np.zeros_like(x)), 1.2)


def district_of(districts: Sequence[District], x: Floats, y: Floats) -> NDArray[np.int64]:
    """The number of the district that each place belongs to: the one that is nearest for its spread."""
    ways = [((x - d.x) ** 2 + (y - d.y) ** 2) / d.spread_m**2 for d in districts]
    nearest: NDArray[np.int64] = np.argmin(np.stack(ways), axis=0)
    return nearest
