"""Where the streets of a generated city run, as edges between points of a lattice.

The city is a lattice of about 100 m. Recursive splitting cuts it into blocks whose side follows the
density; the cuts of the large pieces are arterials, the others streets. A ring road and avenues from
the centre run across the blocks. Every edge joins neighbouring lattice points (diagonals included)
and no two diagonals share a cell, so edges meet only in points: the network is planar.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

STREET, ARTERIAL = 1, 2

Point = tuple[int, int]
Edge = tuple[Point, Point]

_ALWAYS_SPLIT = 9  # cells; a longer side is cut whatever the density
_ARTERIAL_FROM = 15  # cells; cutting a side as long as this makes an arterial


@dataclass(slots=True)
class Lattice:
    """Edges with their rank and street, and the exact place of points that a curve passes."""

    columns: int
    rows: int
    rank: dict[Edge, int] = field(default_factory=dict)
    line: dict[Edge, str] = field(default_factory=dict)
    placed: dict[Point, tuple[float, float]] = field(default_factory=dict)

    def add(self, a: Point, b: Point, rank: int, line: str) -> None:
        edge = (min(a, b), max(a, b))
        if rank > self.rank.get(edge, 0):
            self.rank[edge], self.line[edge] = rank, line

    def holds(self, point: Point) -> bool:
        return 0 <= point[0] <= self.columns and 0 <= point[1] <= self.rows


def lay_blocks(lattice: Lattice, side: NDArray[np.float64], rng: np.random.Generator) -> None:
    """Cut the lattice into blocks; ``side[row, column]`` is the wanted length in cells."""
    pieces = [(0, lattice.columns, 0, lattice.rows)]
    _outline(lattice)
    while pieces:
        left, right, low, high = pieces.pop()
        length = max(right - left, high - low)
        wanted = float(side[low:high, left:right].mean())
        if length < 2 or (length < _ALWAYS_SPLIT and length <= wanted):
            continue
        rank = ARTERIAL if length >= _ARTERIAL_FROM else STREET
        cut = _cut(length, rng)
        if right - left >= high - low:
            _vertical(lattice, left + cut, low, high, rank)
            pieces += [(left, left + cut, low, high), (left + cut, right, low, high)]
        else:
            _horizontal(lattice, low + cut, left, right, rank)
            pieces += [(left, right, low, low + cut), (left, right, low + cut, high)]


def _cut(length: int, rng: np.random.Generator) -> int:
    return min(max(round(length * rng.uniform(0.38, 0.62)), 1), length - 1)


def _outline(lattice: Lattice) -> None:
    for row in (0, lattice.rows):
        _horizontal(lattice, row, 0, lattice.columns, STREET)
    for column in (0, lattice.columns):
        _vertical(lattice, column, 0, lattice.rows, STREET)


def _vertical(lattice: Lattice, column: int, low: int, high: int, rank: int) -> None:
    for row in range(low, high):
        lattice.add((column, row), (column, row + 1), rank, f"v{column}")


def _horizontal(lattice: Lattice, row: int, left: int, right: int, rank: int) -> None:
    for column in range(left, right):
        lattice.add((column, row), (column + 1, row), rank, f"h{row}")


def lay_ring(lattice: Lattice, centre: Point, radius: float) -> None:
    """A ring road of ``radius`` cells around ``centre``."""
    steps = max(round(radius * 40), 8)
    angles = (2 * math.pi * i / steps for i in range(steps + 1))
    spots = ((centre[0] + radius * math.cos(t), centre[1] + radius * math.sin(t)) for t in angles)
    _lay_curve(lattice, spots, "ring")


def lay_avenue(lattice: Lattice, centre: Point, angle: float, name: str) -> None:
    """A straight avenue from ``centre`` to the edge of the city."""
    steps = (0.1 * i for i in range(20 * (lattice.columns + lattice.rows)))
    spots = ((centre[0] + s * math.cos(angle), centre[1] + s * math.sin(angle)) for s in steps)
    _lay_curve(lattice, spots, name)


def _lay_curve(lattice: Lattice, spots: Iterator[tuple[float, float]], line: str) -> None:
    """Follow a curve from lattice point to lattice point until it leaves the lattice."""
    last: Point | None = None
    for spot in spots:
        here = (round(spot[0]), round(spot[1]))
        if not lattice.holds(here):
            last = None
            continue
        if last is not None and here != last:
            for step in _steps(lattice, last, here):
                lattice.add(*step, ARTERIAL, line)
        lattice.placed[here] = _closest(lattice.placed.get(here), spot, here)
        last = here


def _closest(known: tuple[float, float] | None, spot: tuple[float, float], point: Point) -> tuple[float, float]:
    return spot if known is None or math.dist(spot, point) < math.dist(known, point) else known


def _steps(lattice: Lattice, a: Point, b: Point) -> list[Edge]:
    """One step, or two where it would cross another diagonal."""
    corner, other = (b[0], a[1]), (a[0], b[1])
    crossing = (min(corner, other), max(corner, other))
    is_diagonal = a[0] != b[0] and a[1] != b[1]
    return [(a, corner), (corner, b)] if is_diagonal and crossing in lattice.rank else [(a, b)]
