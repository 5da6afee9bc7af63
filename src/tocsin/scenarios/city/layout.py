"""From districts to streets: lay a lattice, bend it, part it at the river, clear parks, tidy up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.scenarios.city.districts import District, density, district_of
from tocsin.scenarios.city.lattice import ARTERIAL, STREET, Lattice, lay_avenue, lay_blocks, lay_ring
from tocsin.scenarios.city.names import street_names
from tocsin.scenarios.city.network import Flags, Floats, Streets
from tocsin.scenarios.city.terrain import Park, River, Size, bend, uneven

CELL_M = 100.0
_BUILT_UP = 0.06  # density below which there are only arterials
_BLIND_SHARE = 0.2  # of dead ends that stay


def lay_streets(
    size: Size, districts: Sequence[District], river: River, parks: Sequence[Park], rng: np.random.Generator
) -> Streets:
    lattice = Lattice(round(size[0] / CELL_M), round(size[1] / CELL_M))
    lay_blocks(lattice, _block_sides(lattice, size, districts), rng)
    _lay_arterials(lattice, size, districts[0], rng)
    streets = _draw(lattice, size, districts, river, rng)
    streets = streets.keep(_remaining(streets, districts, river, parks)).largest_part()
    spare = (streets.rank == ARTERIAL) | (rng.random(len(streets.a)) < _BLIND_SHARE)
    return streets.without_stubs(spare)


def _block_sides(lattice: Lattice, size: Size, districts: Sequence[District]) -> Floats:
    """Cells a block: 1 to 2 in the centre, 4 at the edge of town."""
    x = (np.arange(lattice.columns) + 0.5) * size[0] / lattice.columns
    y = (np.arange(lattice.rows) + 0.5) * size[1] / lattice.rows
    grid_x, grid_y = np.meshgrid(x, y)
    return np.clip(4.4 - 3.4 * np.sqrt(density(districts, grid_x, grid_y)), 1.3, 4.4)


def _lay_arterials(lattice: Lattice, size: Size, centre: District, rng: np.random.Generator) -> None:
    middle = (round(centre.x / size[0] * lattice.columns), round(centre.y / size[1] * lattice.rows))
    lay_ring(lattice, middle, min(lattice.columns, lattice.rows) * rng.uniform(0.22, 0.27))
    first = rng.uniform(0, 2 * math.pi)
    for i in range(5):
        lay_avenue(lattice, middle, first + (i + rng.uniform(-0.2, 0.2)) * 2 * math.pi / 5, f"avenue{i}")


def _draw(
    lattice: Lattice, size: Size, districts: Sequence[District], river: River, rng: np.random.Generator
) -> Streets:
    """Give every lattice point its place in metres and every edge its name."""
    points = sorted({point for edge in lattice.rank for point in edge})
    number = {point: i for i, point in enumerate(points)}
    x, y = _places(lattice, points, size, rng)
    y = river.part(x, y)
    a = np.array([number[edge[0]] for edge in lattice.rank])
    b = np.array([number[edge[1]] for edge in lattice.rank])
    home = district_of(districts, (x[a] + x[b]) / 2, (y[a] + y[b]) / 2)
    street, names = _name(list(lattice.line.values()), home, rng)
    return Streets(x, y, a, b, np.array(list(lattice.rank.values())), street, names)


def _places(
    lattice: Lattice, points: list[tuple[int, int]], size: Size, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    spots = np.array([lattice.placed.get(point, point) for point in points], dtype=np.float64)
    columns = uneven(lattice.columns, size[0], rng)
    rows = uneven(lattice.rows, size[1], rng)
    x = np.interp(spots[:, 0], np.arange(lattice.columns + 1), columns)
    y = np.interp(spots[:, 1], np.arange(lattice.rows + 1), rows)
    return bend(x, y, size, rng)


def _name(
    lines: list[str], home: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """A street is a line within a district; the ring and the avenues keep their name throughout."""
    fresh, numbers = street_names(rng), list[int]()
    names, known = list[str](), dict[tuple[str, int], int]()
    for line, district in zip(lines, home.tolist(), strict=True):
        key = (line, district if line[0] in "hv" else -1)
        if key not in known:
            known[key] = len(names)
            names.append(_curve_name(line, next(fresh)) if key[1] == -1 else next(fresh))
        numbers.append(known[key])
    return np.array(numbers), tuple(names)


def _curve_name(line: str, fresh: str) -> str:
    return "Ring Road" if line == "ring" else fresh.rsplit(" ", 1)[0] + " Avenue"


def _remaining(streets: Streets, districts: Sequence[District], river: River, parks: Sequence[Park]) -> Flags:
    """Arterials everywhere; streets where it is built up, outside parks, not across the river."""
    x, y = (streets.x[streets.a] + streets.x[streets.b]) / 2, (streets.y[streets.a] + streets.y[streets.b]) / 2
    south = river.is_south(streets.x, streets.y)
    crosses = south[streets.a] != south[streets.b]
    is_arterial = streets.rank == ARTERIAL
    wet = crosses & ~is_arterial if (crosses & is_arterial).any() else np.zeros_like(crosses)
    green = np.zeros_like(crosses)
    for park in parks:
        green |= np.hypot(x - park.x, y - park.y) < park.radius_m
    remaining: Flags = ~wet & (
        is_arterial | ((streets.rank == STREET) & ~green & (density(districts, x, y) > _BUILT_UP))
    )
    return remaining
