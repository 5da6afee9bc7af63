"""Distances, and the scan of candidate entries by distance.

The planar test is ``sqrt(dx*dx + dy*dy)`` in IEEE doubles, bit for bit what Spark computes. The
great-circle test is the haversine ``2 R asin(sqrt(least(1, a)))`` with a = sin²(dlat/2) + cos(lat1)
cos(lat2) sin²(dlon/2), degrees being turned into radians first; a is a quarter of the squared chord
between unit vectors, which decides quickly outside a band that is wide beside the rounding errors of
both.

A radius is held as a ``limit``: distance < r is distance <= the double before r. A limit of NaN
stands for ``<= NaN``, which in Spark holds for every distance, NaN itself included.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tocsin.jit import f64, helper, i64, kernel, ro, rw, u8, u32
from tocsin.matching.grid import EARTH_RADIUS_M

F64s = NDArray[np.float64]
I64s = NDArray[np.int64]
U32s = NDArray[np.uint32]
Bitset = NDArray[np.uint8]

_R = EARTH_RADIUS_M
_STEEP = 0.99  # above it asin magnifies rounding errors, and only the full formula decides


def limits(radius: F64s, is_inclusive: bool) -> F64s:
    if is_inclusive:
        return radius
    return np.where(np.isnan(radius), np.inf, np.nextafter(radius, -np.inf))


def unit_vectors(lat: F64s, lon: F64s) -> tuple[F64s, F64s, F64s]:
    p, q = np.radians(lat), np.radians(lon)
    with np.errstate(invalid="ignore"):
        return np.cos(p) * np.cos(q), np.cos(p) * np.sin(q), np.sin(p)


def chord_band(limit: F64s) -> tuple[F64s, F64s]:
    """(below which a is surely within the limit, above which it is surely not)."""
    a = np.sin(np.clip(np.nan_to_num(limit, nan=np.inf), 0.0, math.pi * _R) / (2 * _R)) ** 2
    band = 1e-12 * a + 1e-14 * np.sqrt(a) + 1e-28
    is_open = ~(a < _STEEP)
    low = np.where(is_open | (limit < 0), -1.0, a - band)
    return low, np.where(is_open, np.inf, np.where(limit < 0, -1.0, a + band))


@helper
def _haversine(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    p1, p2 = math.radians(lat1), math.radians(lat2)
    s = math.sin((p2 - p1) / 2.0)
    t = math.sin((math.radians(lon2) - math.radians(lon1)) / 2.0)
    a = s * s + math.cos(p1) * math.cos(p2) * (t * t)
    return 2.0 * _R * math.asin(math.sqrt(a if a < 1.0 else 1.0))


@helper
def _within(distance: float, limit: float) -> bool:
    return (distance <= limit) | (limit != limit)


@helper
def _without(out: U32s, first: int, last: int, removed: Bitset) -> int:
    """Squeeze removed ids out of ``out[first:last]``; the new end."""
    n = first
    for i in range(first, last):
        found = out[i]
        out[n] = found
        n += 1 - ((removed[found >> 3] >> (found & 7)) & 1)
    return n


@helper
def _append(out: U32s, n: int, row: int, offsets: I64s, ids: U32s) -> int:
    """Add what another index found for the row."""
    if offsets.size:
        for i in range(offsets[row], offsets[row + 1]):
            out[n] = ids[i]
            n += 1
    return n


_ROWS = (i64, i64, ro(i64), ro(i64), ro(i64))
_MERGE = (ro(u8), ro(i64), ro(u32), rw(u32), rw(i64))


@kernel(*_ROWS, ro(u32), *_MERGE)
def scan_all(
    row0: int,
    row1: int,
    segments: I64s,
    begin: I64s,
    end: I64s,
    payload: U32s,
    removed: Bitset,
    more_offsets: I64s,
    more_ids: U32s,
    out: U32s,
    offsets: I64s,
) -> None:
    """Emit every candidate of the rows: the entries ``begin[s]:end[s]`` of each of a row's segments."""
    n = offsets[row0]
    for row in range(row0, row1):
        first = n
        for s in range(segments[row], segments[row + 1]):
            for e in range(begin[s], end[s]):
                out[n] = payload[e]
                n += 1
        if removed.size:
            n = _without(out, first, n, removed)
        n = _append(out, n, row, more_offsets, more_ids)
        offsets[row + 1] = n


@kernel(*_ROWS, ro(u32), ro(f64), ro(f64), ro(f64), ro(f64), ro(f64), *_MERGE)
def scan_planar(
    row0: int,
    row1: int,
    segments: I64s,
    begin: I64s,
    end: I64s,
    payload: U32s,
    entry_x: F64s,
    entry_y: F64s,
    entry_limit: F64s,
    xs: F64s,
    ys: F64s,
    removed: Bitset,
    more_offsets: I64s,
    more_ids: U32s,
    out: U32s,
    offsets: I64s,
) -> None:
    """Emit the candidates within their limit of the row's point."""
    n = offsets[row0]
    for row in range(row0, row1):
        first, x, y = n, xs[row], ys[row]
        for s in range(segments[row], segments[row + 1]):
            for e in range(begin[s], end[s]):
                dx, dy = entry_x[e] - x, entry_y[e] - y
                out[n] = payload[e]
                n += _within(math.sqrt(dx * dx + dy * dy), entry_limit[e])
        if removed.size:
            n = _without(out, first, n, removed)
        n = _append(out, n, row, more_offsets, more_ids)
        offsets[row + 1] = n


@kernel(*_ROWS, ro(u32), *(ro(f64),) * 5, ro(u32), *(ro(f64),) * 8, *_MERGE)
def scan_sphere(
    row0: int,
    row1: int,
    segments: I64s,
    begin: I64s,
    end: I64s,
    payload: U32s,
    entry_u: F64s,
    entry_v: F64s,
    entry_w: F64s,
    entry_low: F64s,
    entry_high: F64s,
    owner: U32s,
    lat: F64s,
    lon: F64s,
    limit: F64s,
    lats: F64s,
    lons: F64s,
    us: F64s,
    vs: F64s,
    ws: F64s,
    removed: Bitset,
    more_offsets: I64s,
    more_ids: U32s,
    out: U32s,
    offsets: I64s,
) -> None:
    """The same on the sphere; ``owner`` leads to the places and limits that the full formula needs."""
    n = offsets[row0]
    for row in range(row0, row1):
        first, u, v, w = n, us[row], vs[row], ws[row]
        for s in range(segments[row], segments[row + 1]):
            for e in range(begin[s], end[s]):
                du, dv, dw = entry_u[e] - u, entry_v[e] - v, entry_w[e] - w
                a = (du * du + dv * dv + dw * dw) * 0.25
                is_near = a <= entry_low[e]
                if not is_near and not a > entry_high[e]:
                    o = owner[e]
                    is_near = _within(_haversine(lats[row], lons[row], lat[o], lon[o]), limit[o])
                out[n] = payload[e]
                n += is_near
        if removed.size:
            n = _without(out, first, n, removed)
        n = _append(out, n, row, more_offsets, more_ids)
        offsets[row + 1] = n


@kernel(rw(i64), rw(u32), i64, i64, *(ro(f64),) * 6)
def keep_near(
    row: I64s,
    owner: U32s,
    n: int,
    is_sphere: int,
    xs: F64s,
    ys: F64s,
    row_limit: F64s,
    x: F64s,
    y: F64s,
    owner_limit: F64s,
) -> int:
    """Squeeze out the pairs that are too far apart; the limit is the row's where it has one."""
    kept = 0
    for i in range(n):
        r, o = row[i], owner[i]
        if is_sphere != 0:
            distance = _haversine(xs[r], ys[r], x[o], y[o])
        else:
            dx, dy = xs[r] - x[o], ys[r] - y[o]
            distance = math.sqrt(dx * dx + dy * dy)
        limit = row_limit[r] if row_limit.size else owner_limit[o]
        row[kept], owner[kept] = r, o
        kept += _within(distance, limit)
    return kept


@kernel(i64, i64, ro(i64), ro(u32), i64, ro(u32), *_MERGE)
def emit(
    row0: int,
    row1: int,
    row: I64s,
    owner: U32s,
    n: int,
    ids: U32s,
    removed: Bitset,
    more_offsets: I64s,
    more_ids: U32s,
    out: U32s,
    offsets: I64s,
) -> None:
    """Emit the ids of the pairs that passed every test; pairs are in the order of rows."""
    at, i = offsets[row0], 0
    for r in range(row0, row1):
        first = at
        while i < n and row[i] == r:
            out[at] = ids[owner[i]]
            at += 1
            i += 1
        if removed.size:
            at = _without(out, first, at, removed)
        at = _append(out, at, r, more_offsets, more_ids)
        offsets[r + 1] = at
