"""Who must get which report, computed without the cluster: every report against every subscription.

Only channels whose answer follows from the report and the arguments alone can be foretold. What those with a ``user``
find depends on where people were at the moment of the tick.
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
    """``certain`` pairs must come; of ``possible`` ones, on the edge of a radius or of a login, none has to."""

    certain: frozenset[Pair]
    possible: frozenset[Pair] = frozenset()


def foretell(
    reports: Sequence[Mapping[str, Any]],
    backends: Mapping[int, Mapping[str, Any]],
    since: Mapping[int, int],
) -> Foretold | None:
    """The pairs of a channel, whose distinct ``backends`` have these arguments; ``None`` if nobody can know.

    A report is certain to reach those that were there before it. ``since`` says how many reports each came after.
    """
    wanted = list(backends.values())
    names = wanted[0].keys() if wanted else {}
    if "user" in names:
        return None
    inside = _column(reports, "kind")[:, None] == _column(wanted, "kind")[None, :]
    doubtful = np.arange(len(reports))[:, None] < np.array([since[number] for number in backends])[None, :]
    if "severity" in names:
        inside &= _column(reports, "severity")[:, None] >= _column(wanted, "severity")[None, :]
    if "radius" in names:
        beyond = _beyond(reports, wanted)
        inside &= beyond < EDGE_M
        doubtful |= beyond > -EDGE_M
    return Foretold(_pairs(inside & ~doubtful, reports, backends), _pairs(inside & doubtful, reports, backends))


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
