"""Who must get which report, computed without the cluster: every report against every subscription.

Only channels whose answer follows from the report and the arguments alone can be foretold. What
``NearMe`` finds depends on where people were at the moment of its tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.demo.tally import Pair

Bools = np.ndarray[Any, np.dtype[np.bool_]]
EDGE_M = 1e-6  # so close to the radius that rounding decides


@dataclass(frozen=True, slots=True)
class Foretold:
    """``certain`` pairs must come; of ``possible`` ones, on the edge of a radius, none has to."""

    certain: frozenset[Pair]
    possible: frozenset[Pair] = frozenset()


def foretell(
    channel: str, reports: Sequence[Mapping[str, Any]], backends: Mapping[int, Mapping[str, Any]]
) -> Foretold | None:
    """The pairs of ``channel``, whose distinct ``backends`` have these arguments; ``None`` if nobody can know."""
    if channel == "NearMe":
        return None
    kinds = _column(reports, "kind")[:, None] == _column(backends.values(), "kind")[None, :]
    if channel == "ByKind":
        return Foretold(_pairs(kinds, reports, backends))
    beyond = _beyond(reports, list(backends.values()))
    on_edge = kinds & (np.abs(beyond) <= EDGE_M)
    return Foretold(
        _pairs(kinds & (beyond < 0) & ~on_edge, reports, backends),
        _pairs(on_edge, reports, backends),
    )


def _beyond(
    reports: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How far each report is outside each circle, in metres."""
    dx = _column(reports, "x")[:, None] - _column(wanted, "x")[None, :]
    dy = _column(reports, "y")[:, None] - _column(wanted, "y")[None, :]
    beyond: np.ndarray[Any, np.dtype[np.float64]] = np.hypot(dx, dy) - _column(wanted, "radius")[None, :]
    return beyond


def _pairs(
    found: Bools, reports: Sequence[Mapping[str, Any]], backends: Mapping[int, Mapping[str, Any]]
) -> frozenset[Pair]:
    numbers = list(backends)
    return frozenset((reports[i]["report_id"], numbers[j]) for i, j in np.argwhere(found).tolist())


def _column(items: Any, name: str) -> np.ndarray[Any, Any]:
    return np.array([item[name] for item in items])
