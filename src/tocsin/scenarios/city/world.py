"""A generated city: streets, districts, a river, parks, shelters. It is made up, and like no real one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.districts import District, density, district_of, generate_districts
from tocsin.scenarios.city.layout import lay_streets
from tocsin.scenarios.city.names import SHELTER_KINDS
from tocsin.scenarios.city.network import Floats, Ints, Streets
from tocsin.scenarios.city.routing import Router, driving_pace
from tocsin.scenarios.city.terrain import Park, River, Size
from tocsin.scenarios.seeding import stream

_SMALLEST_M, _LARGEST_M = 1_000, 50_000


@dataclass(frozen=True, slots=True)
class Shelter:
    name: str
    x: float
    y: float
    capacity: int

    def record(self) -> dict[str, object]:
        return {"name": self.name, "x": self.x, "y": self.y, "capacity": self.capacity}


@dataclass(frozen=True, slots=True)
class Place:
    """Where people go and what they subscribe to: a junction with a name and a popularity."""

    name: str
    point: int
    x: float
    y: float
    popularity: float


@dataclass(frozen=True, eq=False)
class City:
    """Everything that stands still. Positions are metres from the south-west corner."""

    seed: int
    size_m: Size
    streets: Streets
    districts: tuple[District, ...]
    river: River
    parks: tuple[Park, ...]
    shelters: tuple[Shelter, ...]
    places: tuple[Place, ...]

    @staticmethod
    def generate(
        seed: int = 1, size_m: Size = (10_000, 8_000), districts: int = 12, shelters: int = 200, places: int = 64
    ) -> City:
        """The same city for the same arguments."""
        _check(size_m, districts, shelters, places)
        rng = stream(seed, "city")
        land = generate_districts(districts, size_m, rng)
        river, parks = River.generate(size_m, rng), _parks(land, size_m, rng)
        streets = lay_streets(size_m, land, river, parks, rng)
        homes = density(land, streets.x, streets.y)
        areas = district_of(land, streets.x, streets.y)
        named = [land[i].name for i in areas.tolist()]
        return City(
            seed,
            size_m,
            streets,
            land,
            river,
            parks,
            _shelters(shelters, size_m, streets, homes, named, rng),
            _places(places, streets, homes, rng),
        )

    @cached_property
    def population(self) -> Floats:
        """For each point of the streets the share of the people who live there."""
        homes = density(self.districts, self.streets.x, self.streets.y) + 0.005
        shares: Floats = homes / homes.sum()
        return shares

    @cached_property
    def district_of_point(self) -> Ints:
        """For each point of the streets the number of its district."""
        return district_of(self.districts, self.streets.x, self.streets.y)

    @cached_property
    def ways_on_foot(self) -> Router:
        """The shortest ways to each place."""
        return Router(self.streets, self._place_points, self.streets.length)

    @cached_property
    def ways_by_car(self) -> Router:
        """The fastest ways to each place, as the length of an arterial that takes as long."""
        return Router(self.streets, self._place_points, self.streets.length / driving_pace(self.streets))

    @property
    def _place_points(self) -> Ints:
        return np.array([place.point for place in self.places], dtype=np.int64)

    def district_at(self, x: float, y: float) -> District:
        return self.districts[int(district_of(self.districts, np.array([x]), np.array([y]))[0])]


def _check(size_m: Size, districts: int, shelters: int, places: int) -> None:
    if len(size_m) != 2 or not all(_SMALLEST_M <= side <= _LARGEST_M for side in size_m):
        raise BadArgument("size_m", f"two lengths from {_SMALLEST_M:,} to {_LARGEST_M:,} m", size_m)
    for name, value, least in (("districts", districts, 1), ("shelters", shelters, 0), ("places", places, 2)):
        if value < least:
            raise BadArgument(name, f"a number from {least} on", value)


def _parks(land: tuple[District, ...], size: Size, rng: np.random.Generator) -> tuple[Park, ...]:
    """Greens beside some districts, a large one near the centre."""
    scale = math.sqrt(size[0] * size[1] / 80e6)
    parks = []
    for i, district in enumerate(land[:6]):
        angle, away = rng.uniform(0, 2 * math.pi), district.spread_m * rng.uniform(0.5, 0.9)
        radius = scale * (rng.uniform(380, 460) if i == 0 else rng.uniform(160, 330))
        spot = district.x + away * math.cos(angle), district.y + away * math.sin(angle)
        parks.append(Park(f"{district.name} Gardens", *spot, radius))
    return tuple(parks)


def _spread(count: int, x: Floats, y: Floats, weight: Floats, rng: np.random.Generator) -> list[int]:
    """Points drawn by weight, each the farthest of some draws from those before; none twice while there are others."""
    chance, chosen = weight / weight.sum(), list[int]()
    nearest = np.full(len(x), np.inf)
    for _ in range(count):
        draws = rng.choice(len(x), size=4, p=chance)
        best = int(draws[np.argmax(nearest[draws])])
        best = best if nearest[best] > 0 else int(nearest.argmax())
        chosen.append(best)
        nearest = np.minimum(nearest, np.hypot(x - x[best], y - y[best]))
    return chosen


def _shelters(
    count: int, size: Size, streets: Streets, homes: Floats, district: list[str], rng: np.random.Generator
) -> tuple[Shelter, ...]:
    made: dict[str, Shelter] = {}
    for point in _spread(count, streets.x, streets.y, homes + 0.05, rng):
        kind, fewest, most = SHELTER_KINDS[rng.integers(len(SHELTER_KINDS))]
        name = _unused(made, f"{_stem(streets, point, rng)} {kind}, {district[point]}")
        spot = _beside(streets, point, size, rng)
        made[name] = Shelter(name, *spot, int(rng.integers(fewest, most + 1)) // 10 * 10)
    return tuple(made.values())


def _unused(made: dict[str, Shelter], name: str) -> str:
    tries = (name if i == 1 else f"{name} {i}" for i in range(1, len(made) + 2))
    return next(free for free in tries if free not in made)


def _stem(streets: Streets, point: int, rng: np.random.Generator) -> str:
    names = streets.names_at(point)
    return names[rng.integers(len(names))].split(" ")[0]


def _beside(streets: Streets, point: int, size: Size, rng: np.random.Generator) -> tuple[float, float]:
    angle, away = rng.uniform(0, 2 * math.pi), rng.uniform(15, 35)
    x = float(streets.x[point]) + away * math.cos(angle)
    y = float(streets.y[point]) + away * math.sin(angle)
    return round(min(max(x, 0.0), size[0]), 1), round(min(max(y, 0.0), size[1]), 1)


def _places(count: int, streets: Streets, homes: Floats, rng: np.random.Generator) -> tuple[Place, ...]:
    if count > len(streets.x):
        raise BadArgument("places", f"at most one for each of the {len(streets.x):,} junctions", count)
    popularity = np.sort(rng.lognormal(0.0, 0.8, count))[::-1]
    spots: Ints = np.array(_spread(count, streets.x, streets.y, homes + 0.1, rng))
    order = np.argsort(-homes[spots], kind="stable")
    return tuple(
        Place(" / ".join(streets.names_at(point)[:2]), point, *_at(streets, point), float(share))
        for point, share in zip(spots[order].tolist(), popularity, strict=True)
    )


def _at(streets: Streets, point: int) -> tuple[float, float]:
    return round(float(streets.x[point]), 1), round(float(streets.y[point]), 1)
