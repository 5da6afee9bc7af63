"""Reading the few series that the dashboard shows from Prometheus' text format; the others are passed over."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

_LINE = re.compile(r"^tocsin_(\w+?)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

CLUSTER = frozenset(
    {
        "results_total", "matched_total", "considered_total", "lost_results",
        "execution_seconds_sum", "execution_seconds_count",
        "record_to_result_seconds_sum", "record_to_result_seconds_count",
    }
)  # fmt: skip
BROKER = frozenset({"broker_deliveries_total", "broker_shed_total", "broker_gaps_total"})


def read(text: str, wanted: frozenset[str]) -> dict[str, float]:
    """Values by name, with the channel behind it where the series has one: ``results_total ByKind``."""
    return dict(_read(text, wanted))


def _read(text: str, wanted: frozenset[str]) -> Iterator[tuple[str, float]]:
    for name, labels, value in _LINE.findall(text):
        number = _number(value) if name in wanted else None
        if number is not None:
            channel = dict(_LABEL.findall(labels)).get("channel")
            yield (f"{name} {channel}" if channel else name), number


def _number(text: str) -> float | None:
    """None for what cannot be counted with."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
