"""The keys under which subscriptions are stored and records look.

A head is the hash of all ``Equal`` values (two zeros where there are none). Where a predicate is spread
(see ``access``) a key is the hash of the head and one cell, word or element; else it is the head.

Two levels of cells are special. ``EVERYWHERE`` has one cell: it holds circles too large or too odd for
a grid, and every record looks there. Where the radius is the record's, points are stored at each of
``POINT_LEVELS`` and at ``EVERYWHERE``, and a record looks at the one level that suits its radius: of the
stored ones the nearest to its own, so that its circle is at most six cells wide, and ``EVERYWHERE``
where it is larger than the coarsest allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.access import Access
from tocsin.matching.encode import Side
from tocsin.matching.fingerprint import Seed, folded, folded_cells
from tocsin.matching.grid import (
    EARTH_RADIUS_M,
    MAX_RADIUS,
    cells_planar,
    cells_sphere,
    cover_planar_at,
    cover_sphere_at,
    level_of,
)
from tocsin.matching.siphash import Lanes
from tocsin.matching.spec import HasWord, IndexSpec, Member, Metric, Near

EVERYWHERE = -1
POINT_LEVELS = (0, 3, 6, 9)
_LARGEST_CAP = 0.999 * math.pi * EARTH_RADIUS_M

I32s = NDArray[np.int32]
Cells = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by ascending owner; ``levels`` are those of the cells among them."""

    owner: I32s
    lanes: Lanes
    levels: tuple[int, ...] = ()


def heads_of(access: Access, side: Side, seed: Seed) -> Lanes:
    heads: Lanes = (np.zeros(side.n, np.uint64), np.zeros(side.n, np.uint64))
    everyone = np.arange(side.n, dtype=np.int32)
    for i in access.equals:
        heads = folded(seed, everyone, heads, side.lanes(i))
    return heads


def param_keys(spec: IndexSpec, access: Access, side: Side, seed: Seed) -> Keys:
    """Where each subscription that can match at all is stored."""
    heads, i = heads_of(access, side, seed), access.spread
    if i is None:
        return _plain(heads, side)
    predicate = spec.predicates[i]
    if isinstance(predicate, Near):
        near = _stored_points(predicate, i, side, spec.cell) if predicate.radius_probe else None
        owner, level, cells = near or _stored_circles(predicate, i, side, spec.cell)
        used = tuple(sorted(set(np.unique(level).tolist())))
        return Keys(owner, folded_cells(seed, owner, heads, level, cells), used)
    return _listed(heads, side, i, seed, is_list=isinstance(predicate, Member))


def record_keys(spec: IndexSpec, access: Access, side: Side, seed: Seed, levels: Sequence[int]) -> Keys:
    """Where each record looks, given the levels that the index uses."""
    heads, i = heads_of(access, side, seed), access.spread
    if i is None:
        return _plain(heads, side)
    predicate = spec.predicates[i]
    if isinstance(predicate, Near):
        looked = _looked_circles(predicate, i, side, spec.cell) if predicate.radius_probe else None
        owner, level, cells = looked or _looked_points(predicate, i, side, spec.cell, levels)
        return Keys(owner, folded_cells(seed, owner, heads, level, cells))
    return _listed(heads, side, i, seed, is_list=isinstance(predicate, HasWord))


def _alive(side: Side) -> I32s:
    return np.flatnonzero(side.alive).astype(np.int32)


def _plain(heads: Lanes, side: Side) -> Keys:
    owner = _alive(side)
    return Keys(owner, (heads[0][owner], heads[1][owner]))


def _listed(heads: Lanes, side: Side, i: int, seed: Seed, *, is_list: bool) -> Keys:
    """One key a fingerprint: a list of them for each owner, or one."""
    one, two = side.lanes(i)
    owner = np.arange(side.n, dtype=np.int32)
    if is_list:
        owner = np.repeat(owner, np.diff(side.parts[i, "offsets"]))
    kept = side.alive[owner]
    return Keys(owner[kept], folded(seed, owner[kept], heads, (one[kept], two[kept])))


def _cover(
    near: Near, x: NDArray[np.float64], y: NDArray[np.float64], r: NDArray[np.float64], level: I32s, cell: float
) -> tuple[I32s, Cells]:
    covering = cover_sphere_at if near.metric is Metric.SPHERE else cover_planar_at
    owner, *cells = covering(x, y, r, level, cell)
    return owner, tuple(cells)


def _is_odd(near: Near, radius: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Circles that no grid holds: on the sphere also those that reach the antipode."""
    largest = _LARGEST_CAP if near.metric is Metric.SPHERE else MAX_RADIUS
    return ~(radius <= largest)


def _stored_circles(near: Near, i: int, side: Side, cell: float) -> tuple[I32s, I32s, Cells]:
    x, y, radius = (side.parts[i, part] for part in ("x", "y", "radius"))
    odd = _is_odd(near, radius)
    level = level_of(radius, cell)
    owner, cells = _cover(near, x, y, np.where(side.alive & ~odd, radius, -1.0), level, cell)
    return _with_everywhere(owner, level[owner], cells, np.flatnonzero(odd & side.alive))


def _with_everywhere(owner: I32s, level: I32s, cells: Cells, more: NDArray[np.int64]) -> tuple[I32s, I32s, Cells]:
    """The same with the owners in ``more`` added at EVERYWHERE, by ascending owner."""
    if more.size == 0:
        return owner, level, cells
    owners = np.concatenate([owner, more.astype(np.int32)])
    order = np.argsort(owners, kind="stable")
    levels = np.concatenate([level, np.full(more.size, EVERYWHERE, np.int32)])
    zeros = np.zeros(more.size, np.int64)
    return owners[order], levels[order], tuple(np.concatenate([c, zeros])[order] for c in cells)


def _cells(near: Near, side: Side, i: int, rows: I32s, level: int, cell: float) -> Cells:
    x, y = side.parts[i, "x"][rows], side.parts[i, "y"][rows]
    if level == EVERYWHERE:
        return (np.zeros(rows.size, np.int64),) * (3 if near.metric is Metric.SPHERE else 2)
    return cells_sphere(x, y, level, cell) if near.metric is Metric.SPHERE else cells_planar(x, y, level, cell)


def _looked_points(near: Near, i: int, side: Side, cell: float, levels: Sequence[int]) -> tuple[I32s, I32s, Cells]:
    """Each point's cell at each level, row by row."""
    rows = _alive(side)
    by_level = [_cells(near, side, i, rows, level, cell) for level in levels]
    axes = 3 if near.metric is Metric.SPHERE else 2
    cells = tuple(
        np.ascontiguousarray(np.array([c[axis] for c in by_level], np.int64).reshape(len(levels), rows.size).T).ravel()
        for axis in range(axes)
    )
    return np.repeat(rows, len(levels)), np.tile(np.array(levels, np.int32), rows.size), cells


def _stored_points(near: Near, i: int, side: Side, cell: float) -> tuple[I32s, I32s, Cells]:
    return _looked_points(near, i, side, cell, (*POINT_LEVELS, EVERYWHERE))


def _looked_circles(near: Near, i: int, side: Side, cell: float) -> tuple[I32s, I32s, Cells]:
    """The cells that each record's circle covers at the stored level that suits it."""
    x, y, radius = (side.parts[i, part] for part in ("x", "y", "radius"))
    level = ((level_of(radius, cell) + 1) // 3 * 3).astype(np.int32)
    odd = _is_odd(near, radius) | (level > POINT_LEVELS[-1])
    level[odd] = 0
    owner, cells = _cover(near, x, y, np.where(side.alive & ~odd, radius, -1.0), level, cell)
    return _with_everywhere(owner, level[owner], cells, np.flatnonzero(odd & side.alive))
