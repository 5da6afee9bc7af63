"""Cheapest ways over the streets to a fixed set of destinations.

One run of Dijkstra's algorithm a destination, when somebody first goes there; after that the next
arc from any point is a lookup, so that thousands of people move by array operations.
"""

from __future__ import annotations

import heapq

import numpy as np

from tocsin.scenarios.city.lattice import ARTERIAL
from tocsin.scenarios.city.network import Floats, Ints, Streets

SIDE_STREET = 0.6  # share of their speed that drivers keep off the arterials


def driving_pace(streets: Streets) -> Floats:
    """For each edge the share of their speed that drivers keep."""
    return np.where(streets.rank == ARTERIAL, 1.0, SIDE_STREET)


class Router:
    """Ways to ``targets`` (points) where passing an edge costs ``cost``."""

    def __init__(self, streets: Streets, targets: Ints, cost: Floats) -> None:
        self._streets = streets
        self._targets = targets
        self._cost = np.repeat(cost, 2).tolist()
        self._arc_to = streets.arc_to.tolist()
        self._known = np.zeros(len(targets), dtype=np.bool_)
        self._next = np.full((len(targets), len(streets.x)), -1, dtype=np.int64)
        self._left = np.zeros((len(targets), len(streets.x)))

    def next_arc(self, target: Ints, point: Ints) -> Ints:
        """For each pair the arc to take from ``point``; -1 at the target itself."""
        self._learn(target)
        return self._next[target, point]

    def left(self, target: Ints, point: Ints) -> Floats:
        """For each pair the cost of the way that is left."""
        self._learn(target)
        return self._left[target, point]

    def _learn(self, target: Ints) -> None:
        for unknown in np.unique(target[~self._known[target]]).tolist():
            self._next[unknown], self._left[unknown] = self._search(int(self._targets[unknown]))
            self._known[unknown] = True

    def _search(self, target: int) -> tuple[list[int], list[float]]:
        """From the target outwards; the way to it is each arc's way back."""
        leaving, arc_to, cost = self._streets.leaving, self._arc_to, self._cost
        best = [float("inf")] * len(leaving)
        way = [-1] * len(leaving)
        best[target] = 0.0
        heap = [(0.0, target)]
        while heap:
            spent, here = heapq.heappop(heap)
            if spent > best[here]:
                continue
            for arc in leaving[here]:
                there, total = arc_to[arc], spent + cost[arc]
                if total < best[there]:
                    best[there], way[there] = total, arc ^ 1
                    heapq.heappush(heap, (total, there))
        return way, best
