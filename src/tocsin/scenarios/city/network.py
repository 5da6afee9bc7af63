"""The street network: points, edges, and arcs to travel on.

Every edge is two arcs: ``2e`` from ``a`` to ``b``, ``2e + 1`` back, so ``arc ^ 1`` is the way back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Streets:
    """Points ``x, y`` in metres; edges from ``a`` to ``b`` with a rank and the number of a street name."""

    x: Floats
    y: Floats
    a: Ints
    b: Ints
    rank: Ints
    street: Ints
    names: tuple[str, ...]

    @cached_property
    def length(self) -> Floats:
        return np.hypot(self.x[self.a] - self.x[self.b], self.y[self.a] - self.y[self.b])

    @cached_property
    def arc_from(self) -> Ints:
        return np.stack([self.a, self.b], axis=1).ravel()

    @cached_property
    def arc_to(self) -> Ints:
        return np.stack([self.b, self.a], axis=1).ravel()

    @cached_property
    def arc_length(self) -> Floats:
        return np.repeat(self.length, 2)

    @cached_property
    def leaving(self) -> list[list[int]]:
        """The arcs that leave each point."""
        arcs: list[list[int]] = [[] for _ in range(len(self.x))]
        for arc, point in enumerate(self.arc_from.tolist()):
            arcs[point].append(arc)
        return arcs

    def names_at(self, point: int) -> list[str]:
        """The streets that meet at a point, each once."""
        return list(dict.fromkeys(self.names[self.street[arc // 2]] for arc in self.leaving[point]))

    def distance_to(self, x: Floats, y: Floats) -> Floats:
        """How far each position is from the nearest street."""
        return np.array([self._distance_to(px, py) for px, py in zip(x, y, strict=True)])

    def _distance_to(self, px: float, py: float) -> float:
        ax, ay = self.x[self.a], self.y[self.a]
        dx, dy = self.x[self.b] - ax, self.y[self.b] - ay
        along = np.clip(((px - ax) * dx + (py - ay) * dy) / self.length**2, 0.0, 1.0)
        return float(np.hypot(ax + along * dx - px, ay + along * dy - py).min())

    def keep(self, edges: Flags) -> Streets:
        """Only these edges, and only the points that they touch."""
        used, ends = np.unique(np.concatenate([self.a[edges], self.b[edges]]), return_inverse=True)
        half = len(ends) // 2
        a, b = ends[:half].astype(np.int64), ends[half:].astype(np.int64)
        return Streets(self.x[used], self.y[used], a, b, self.rank[edges], self.street[edges], self.names)

    def largest_part(self) -> Streets:
        """The biggest connected part."""
        label = components(len(self.x), self.a, self.b)
        biggest = np.bincount(label).argmax()
        return self.keep(label[self.a] == biggest)

    def without_stubs(self, spare: Flags) -> Streets:
        """Dead ends taken back to the last junction; edges in ``spare`` stay."""
        kept = np.ones(len(self.a), dtype=np.bool_)
        while True:
            degree = np.bincount(np.concatenate([self.a[kept], self.b[kept]]), minlength=len(self.x))
            stubs = kept & ~spare & ((degree[self.a] == 1) | (degree[self.b] == 1))
            if not stubs.any():
                return self.keep(kept)
            kept &= ~stubs


def components(points: int, a: Ints, b: Ints) -> Ints:
    """A number for each point, equal where a path joins them: the smallest point of the part."""
    label = np.arange(points)
    while True:
        before = label.copy()
        low = np.minimum(label[a], label[b])
        np.minimum.at(label, a, low)
        np.minimum.at(label, b, low)
        label = label[label]
        if np.array_equal(before, label):
            return label
