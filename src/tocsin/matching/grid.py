"""Grids of cells at levels, and the cells that circles cover.

Cells of level k have the size ``cell * 2**k``. A circle takes the smallest level k >= 0 at which its
diameter is at most three cells, so it covers at most about 16. A point lies in one cell of each
level: in the plane ``(floor(x / size), floor(y / size))``; on the sphere the cube
``(floor(X / size), floor(Y / size), floor(Z / size))`` of its place in space, X = R cos(lat) cos(lon),
Y = R cos(lat) sin(lon), Z = R sin(lat). Cell numbers are clamped to ±2**40.

Covers are conservative: a margin far above the rounding errors is added, so a point at which the
exact test may hold always lies in a covered cell. On the sphere the chord of an arc of length r is
never longer than r, so a ball around the centre holds the cap. A radius of zero covers the centre's
cell; a radius that is negative, not finite or above ``MAX_RADIUS`` covers nothing, and neither does
a centre that is not finite.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin.jit import f64, helper, i32, i64, kernel, ro, rw

EARTH_RADIUS_M = 6371008.8
MAX_RADIUS = 1e300
CELL_BOUND = 2.0**40

F64s = NDArray[np.float64]
I64s = NDArray[np.int64]
I32s = NDArray[np.int32]

_R = EARTH_RADIUS_M


@helper
def _cell(value: float, size: float) -> np.int64:
    return np.int64(min(max(math.floor(value / size), -CELL_BOUND), CELL_BOUND))


@helper
def _margin(value: float, radius: float, size: float) -> float:
    return size * 1e-9 + (abs(value) + radius) * 1e-15


@helper
def _gap(value: float, cell: int, size: float) -> float:
    """How far ``value`` is from the cell's extent; 0 inside it and for the outermost cells."""
    if abs(cell) >= CELL_BOUND:
        return 0.0
    return max(max(cell * size - value, value - (cell + 1) * size), 0.0)


@helper
def _reach(cell: int, size: float) -> float:
    """The greatest distance from zero of the cell's extent."""
    return max(abs(cell * size), abs((cell + 1) * size))


@helper
def _covers(x: float, y: float, r: float) -> bool:
    return math.isfinite(x) and math.isfinite(y) and 0.0 <= r <= MAX_RADIUS


@helper
def _touches(x: float, y: float, r: float, cx: int, cy: int, size: float) -> bool:
    dx, dy = _gap(x, cx, size), _gap(y, cy, size)
    return dx * dx + dy * dy <= r * r


@kernel(ro(f64), ro(f64), ro(f64), ro(i32), f64)
def _cover_planar(x: F64s, y: F64s, r: F64s, level: I32s, cell: float) -> tuple[I32s, I64s, I64s]:
    room = np.int64(16 + x.size * 12)
    owner, cx, cy = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64)
    n = 0
    for i in range(x.size):
        if not _covers(x[i], y[i], r[i]):
            continue
        size = cell * 2.0 ** level[i]
        reach = r[i] + _margin(max(abs(x[i]), abs(y[i])), r[i], size)
        x0, x1 = _cell(x[i] - reach, size), _cell(x[i] + reach, size)
        y0, y1 = _cell(y[i] - reach, size), _cell(y[i] + reach, size)
        need = n + (x1 - x0 + 1) * (y1 - y0 + 1)
        if need > room:
            room = max(np.int64(need), room * 2)
            wo, wx, wy = np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64)
            wo[:n], wx[:n], wy[:n] = owner[:n], cx[:n], cy[:n]
            owner, cx, cy = wo, wx, wy
        for a in range(x0, x1 + 1):
            for b in range(y0, y1 + 1):
                if _touches(x[i], y[i], reach, a, b, size):
                    owner[n], cx[n], cy[n] = i, a, b
                    n += 1
    return owner[:n], cx[:n], cy[:n]


@helper
def _near_surface(a: int, b: int, c: int, size: float, margin: float) -> bool:
    nearest = math.sqrt(_gap(0.0, a, size) ** 2 + _gap(0.0, b, size) ** 2 + _gap(0.0, c, size) ** 2)
    farthest = math.sqrt(_reach(a, size) ** 2 + _reach(b, size) ** 2 + _reach(c, size) ** 2)
    return nearest <= _R + margin and farthest >= _R - margin


@helper
def _place(lat: float, lon: float) -> tuple[float, float, float]:
    p, q = math.radians(lat), math.radians(lon)
    return _R * math.cos(p) * math.cos(q), _R * math.cos(p) * math.sin(q), _R * math.sin(p)


@helper
def _chord(r: float) -> float:
    return 2.0 * _R * math.sin(min(r / (2.0 * _R), math.pi / 2.0))


@kernel(ro(f64), ro(f64), ro(f64), ro(i32), f64)
def _cover_sphere(lat: F64s, lon: F64s, r: F64s, level: I32s, cell: float) -> tuple[I32s, I64s, I64s, I64s]:
    room = np.int64(16 + lat.size * 20)
    owner, cx = np.empty(room, np.int32), np.empty(room, np.int64)
    cy, cz = np.empty(room, np.int64), np.empty(room, np.int64)
    n = 0
    for i in range(lat.size):
        if not _covers(lat[i], lon[i], r[i]):
            continue
        size = cell * 2.0 ** level[i]
        margin = 1e-6 + _margin(_R, 0.0, size)
        reach = _chord(r[i]) + margin
        x, y, z = _place(lat[i], lon[i])
        x0, x1 = _cell(x - reach, size), _cell(x + reach, size)
        y0, y1 = _cell(y - reach, size), _cell(y + reach, size)
        z0, z1 = _cell(z - reach, size), _cell(z + reach, size)
        need = n + (x1 - x0 + 1) * (y1 - y0 + 1) * (z1 - z0 + 1)
        if need > room:
            room = max(np.int64(need), room * 2)
            wo, wx = np.empty(room, np.int32), np.empty(room, np.int64)
            wy, wz = np.empty(room, np.int64), np.empty(room, np.int64)
            wo[:n], wx[:n], wy[:n], wz[:n] = owner[:n], cx[:n], cy[:n], cz[:n]
            owner, cx, cy, cz = wo, wx, wy, wz
        for a in range(x0, x1 + 1):
            for b in range(y0, y1 + 1):
                for c in range(z0, z1 + 1):
                    dx, dy, dz = _gap(x, a, size), _gap(y, b, size), _gap(z, c, size)
                    is_met = dx * dx + dy * dy + dz * dz <= reach * reach
                    if is_met and _near_surface(a, b, c, size, margin):
                        owner[n], cx[n], cy[n], cz[n] = i, a, b, c
                        n += 1
    return owner[:n], cx[:n], cy[:n], cz[:n]


@kernel(ro(f64), ro(f64), i64, f64, rw(i64), rw(i64))
def _cells_planar(x: F64s, y: F64s, level: int, cell: float, cx: I64s, cy: I64s) -> None:
    size = cell * 2.0**level
    for i in range(x.size):
        if math.isfinite(x[i]) and math.isfinite(y[i]):
            cx[i], cy[i] = _cell(x[i], size), _cell(y[i], size)
        else:
            cx[i] = cy[i] = 1 << 60


@kernel(ro(f64), ro(f64), i64, f64, rw(i64), rw(i64), rw(i64))
def _cells_sphere(lat: F64s, lon: F64s, level: int, cell: float, cx: I64s, cy: I64s, cz: I64s) -> None:
    size = cell * 2.0**level
    for i in range(lat.size):
        if math.isfinite(lat[i]) and math.isfinite(lon[i]):
            x, y, z = _place(lat[i], lon[i])
            cx[i], cy[i], cz[i] = _cell(x, size), _cell(y, size), _cell(z, size)
        else:
            cx[i] = cy[i] = cz[i] = 1 << 60


def level_of(radius: ArrayLike, cell: float) -> I32s:
    """The smallest level k >= 0 with ``2 * radius <= 3 * cell * 2**k``; 0 for what covers nothing."""
    r = np.asarray(radius, np.float64)
    usable = np.where((r >= 0) & (r <= MAX_RADIUS), r, 0.0)
    ratio = 2.0 * usable / cell / 3.0
    level = np.ceil(np.log2(np.maximum(ratio, 1.0)))
    level -= (level > 0) & (2.0 * usable / (cell * np.exp2(level - 1)) <= 3.0)
    level += 2.0 * usable / (cell * np.exp2(level)) > 3.0
    return level.astype(np.int32)


def cover_planar(x: ArrayLike, y: ArrayLike, r: ArrayLike, cell: float) -> tuple[I32s, I32s, I64s, I64s]:
    """The cells that each circle meets: (index of the circle, level, cx, cy), by ascending index."""
    level = np.atleast_1d(level_of(r, cell))
    owner, cx, cy = cover_planar_at(x, y, r, level, cell)
    return owner, level[owner], cx, cy


def cover_planar_at(x: ArrayLike, y: ArrayLike, r: ArrayLike, level: ArrayLike, cell: float) -> tuple[I32s, I64s, I64s]:
    """The same with the level of each circle given: (index, cx, cy)."""
    owner, cx, cy = _cover_planar(_floats(x), _floats(y), _floats(r), _levels(level), float(cell))
    return owner, cx, cy


def cover_sphere(lat: ArrayLike, lon: ArrayLike, r: ArrayLike, cell: float) -> tuple[I32s, I32s, I64s, I64s, I64s]:
    """The cubes that each cap meets: (index of the cap, level, cx, cy, cz), by ascending index."""
    level = np.atleast_1d(level_of(r, cell))
    owner, cx, cy, cz = cover_sphere_at(lat, lon, r, level, cell)
    return owner, level[owner], cx, cy, cz


def cover_sphere_at(
    lat: ArrayLike, lon: ArrayLike, r: ArrayLike, level: ArrayLike, cell: float
) -> tuple[I32s, I64s, I64s, I64s]:
    """The same with the level of each cap given: (index, cx, cy, cz)."""
    owner, cx, cy, cz = _cover_sphere(_floats(lat), _floats(lon), _floats(r), _levels(level), float(cell))
    return owner, cx, cy, cz


def cells_planar(x: ArrayLike, y: ArrayLike, level: int, cell: float) -> tuple[I64s, I64s]:
    """The cell of each point; a point that is not finite gets one that no circle covers."""
    xs, ys = _floats(x), _floats(y)
    cx, cy = np.empty(xs.size, np.int64), np.empty(xs.size, np.int64)
    _cells_planar(xs, ys, level, float(cell), cx, cy)
    return cx, cy


def cells_sphere(lat: ArrayLike, lon: ArrayLike, level: int, cell: float) -> tuple[I64s, I64s, I64s]:
    """The cube of each point; a point that is not finite gets one that no cap covers."""
    lats, lons = _floats(lat), _floats(lon)
    cx, cy, cz = (np.empty(lats.size, np.int64) for _ in range(3))
    _cells_sphere(lats, lons, level, float(cell), cx, cy, cz)
    return cx, cy, cz


def _floats(values: ArrayLike) -> F64s:
    return np.ascontiguousarray(np.atleast_1d(np.asarray(values, np.float64)))


def _levels(values: ArrayLike) -> I32s:
    return np.ascontiguousarray(np.atleast_1d(np.asarray(values, np.int32)))
