"""SQL for the cells of ``tocsin.matching.grid``: where a point lies, what a circle covers.

Two ways to meet: one side is *spread* over all the cells that its circle covers, the other *probes* with
the one cell in which its point lies. If all circles are of one size that happens at one level;
otherwise each circle takes the level that fits it, and points probe every level.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.functions import EARTH_RADIUS_M, print_sql

_BOUND = 2**40  # as in the grid: cell numbers are held to it


def level_of(radius: float, cell: float) -> int:
    """The smallest level at which a circle's diameter is at most three cells."""
    level = 0
    while 2 * radius > 3 * cell * 2**level:
        level += 1
    return level


def number_sql(value: float) -> str:
    return f"CAST({float(value)!r} AS DOUBLE)"


@dataclass(frozen=True, slots=True)
class Point:
    """Two coordinates, as SQL, in the plane or on the sphere."""

    sphere: bool
    x: str
    y: str

    @staticmethod
    def of(sphere: bool, x: exp.Expr, y: exp.Expr) -> Point:
        return Point(sphere, f"CAST({print_sql(x)} AS DOUBLE)", f"CAST({print_sql(y)} AS DOUBLE)")

    def axes_sql(self) -> list[str]:
        """The coordinates that cells are counted along: two, or three in space."""
        if not self.sphere:
            return [self.x, self.y]
        lat, lon, earth = f"RADIANS({self.x})", f"RADIANS({self.y})", number_sql(EARTH_RADIUS_M)
        return [
            f"{earth} * COS({lat}) * COS({lon})",
            f"{earth} * COS({lat}) * SIN({lon})",
            f"{earth} * SIN({lat})",
        ]

    def cell_sql(self, cell: float, level: int) -> list[str]:
        """The numbers of the cell that holds the point."""
        return [cell_number_sql(axis, number_sql(cell * 2**level)) for axis in self.axes_sql()]


def cell_number_sql(coordinate: str, size: str) -> str:
    return f"GREATEST(LEAST(FLOOR(({coordinate}) / {size}), {_BOUND}), -{_BOUND})"


def probe_sql(point: Point, cell: float, levels: int) -> str:
    """An array of (level, cell numbers…), one for each of ``levels``."""
    structs = (f"STRUCT({', '.join([str(k), *point.cell_sql(cell, k)])})" for k in range(levels))
    return f"ARRAY({', '.join(structs)})"


def level_sql(radius: str, cell: float, levels: int) -> str:
    """The level of a circle; LOG2 of 0 is NULL, which GREATEST passes over."""
    exact = f"CEIL(LOG2(2 * {radius} / {number_sql(3 * cell)}))"
    return f"CAST(LEAST(GREATEST(0, {exact}), {levels - 1}) AS INT)"


def cover_sql(point: Point, radius: str, size: str) -> list[str]:
    """For each axis, the sequence of cell numbers that a circle's bounding box meets.

    The margin is far above what rounding may lose. On the sphere a chord is shorter than its arc, so
    the ball of the same radius holds the cap.
    """
    reach = f"({radius} + {size} * 1E-6 + 1E-6)"
    return [
        f"SEQUENCE({cell_number_sql(f'{axis} - {reach}', size)}, {cell_number_sql(f'{axis} + {reach}', size)})"
        for axis in point.axes_sql()
    ]
