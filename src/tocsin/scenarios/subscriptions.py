"""Subscriptions and reports as columns, for benchmarks: uniform, independent, a million in a moment.

The city of the benchmarks is 10 × 8 km with eight kinds of event; a spatial subscription names a kind
and a circle with a radius from 200 to 1,000 m. The columns are those of the channel NearPlace and of
the dataset Reports.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.scenarios.city.emergencies import KINDS, RADIUS_M
from tocsin.scenarios.seeding import stream

SIZE_M = (10_000.0, 8_000.0)
RADII_M = (200.0, 1_000.0)
_START = np.datetime64("2026-01-01T00:00:00", "us")

Columns = dict[str, NDArray[Any]]


def uniform_spatial(n: int, seed: int = 1) -> Columns:
    """``kind, x, y, radius`` of ``n`` subscriptions."""
    rng = _stream(n, seed, "spatial subscriptions")
    return {
        "kind": np.array(KINDS)[rng.integers(len(KINDS), size=n)],
        "x": rng.uniform(0.0, SIZE_M[0], n),
        "y": rng.uniform(0.0, SIZE_M[1], n),
        "radius": rng.uniform(*RADII_M, n),
    }


def uniform_keys(n: int, distinct: int, seed: int = 1) -> Columns:
    """``key`` of ``n`` equality subscriptions over ``distinct`` values, each used while there are enough."""
    rng = _stream(n, seed, "equality subscriptions")
    if distinct < 1:
        raise BadArgument("distinct", "a number from 1 on", distinct)
    return {"key": np.char.add("key", rng.permutation(np.arange(n) % distinct).astype(np.str_))}


def uniform_reports(n: int, seed: int = 1, per_s: float = 1_000.0) -> Columns:
    """The columns of Reports for ``n`` records, ``per_s`` of them a second from a fixed moment on."""
    rng = _stream(n, seed, "reports in columns")
    kind = rng.integers(len(KINDS), size=n)
    severity = rng.integers(1, 6, size=n, dtype=np.int32)
    numbers = np.arange(n)
    kinds = np.array(KINDS)[kind]
    return {
        "report_id": np.char.add("r", np.char.zfill(numbers.astype(np.str_), 9)),
        "kind": kinds,
        "severity": severity,
        "x": rng.uniform(0.0, SIZE_M[0], n),
        "y": rng.uniform(0.0, SIZE_M[1], n),
        "radius": np.array([RADIUS_M[name] for name in KINDS])[kind] * (0.4 + 0.2 * severity),
        "text": np.char.add(np.char.add("Emergency of kind ", kinds), ": follow the instructions of the crews."),
        "at": _START + (numbers * 1e6 / per_s).astype("timedelta64[us]"),
    }


def _stream(n: int, seed: int, name: str) -> np.random.Generator:
    if n < 0:
        raise BadArgument("n", "a number from 0 on", n)
    return stream(seed, name)
