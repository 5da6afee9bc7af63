"""Settings of how channels execute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.config.checks import ordered
from tocsin.settings.declare import Seconds, duration, flag, integer, number


@dataclass(frozen=True, slots=True)
class Channels:
    tick_min_interval: Seconds = duration(
        "5ms", "Continuous channels wait so long for more records before a tick.", low="0ms", high="1m"
    )
    max_window_records: int = integer(
        100_000, "New records one execution looks at; what is left waits for the next.", low=1, high=100_000_000
    )
    driver_records: int = integer(
        500,
        "Windows of at most so many records are matched in the driver, larger ones in Spark's workers.",
        low=0,
        high=10**6,
    )
    min_period: Seconds = duration("100ms", "Shortest PERIOD a channel may ask for.", high="1h")
    retry_backoff_min: Seconds = duration("500ms", "First pause of a failing channel.", high="1h")
    retry_backoff_max: Seconds = duration("1m", "Longest pause of a failing channel.", high="24h")
    execution_limit: Seconds = duration(
        "5m",
        "How long one execution may run; then it is cancelled, its channel reported as failing, and the same window "
        "tried again after a pause.",
        low="100ms",
        high="24h",
    )
    yield_after: Seconds = duration(
        "10s",
        "How long others may wait for Spark or a thread before the longest execution is cancelled, as at its limit; "
        "each time that this ends it, its next try may hold others for twice as long, up to eight times.",
        low="100ms",
        high="24h",
    )
    slow_backoff_max: Seconds = duration(
        "10m", "Longest pause of a channel that took too long; it pauses for twice the time that it took.", high="24h"
    )
    end_wait: Seconds = duration(
        "500ms",
        "How long an execution that PAUSE, DROP or OR REPLACE ends may still take to finish before it is cancelled.",
        low="0ms",
        high="10m",
    )
    stop_wait: Seconds = duration(
        "5s",
        "How long a drain waits for executions to finish before it cancels them, and how long it, DROP CHANNEL and "
        "CREATE OR REPLACE CHANNEL wait for cancelled ones to end.",
        low="0ms",
        high="10m",
    )
    index: bool = flag(True, "Match by index where a channel allows it; otherwise always by join.")
    cell: float = number(500.0, "Side of the base grid cell, in the unit of the coordinates (metres on the sphere).")
    max_radius: float = number(50_000.0, "Largest radius a subscription may have, in the same unit.")
    compact_pending: int = integer(
        2_000,
        "Subscriptions added and removed before a channel's base is compacted, or 1 % of it if that is more.",
        low=1,
        high=100_000_000,
    )

    def problems(self) -> Iterator[str]:
        yield from ordered("channels", self, "retry_backoff_min", "retry_backoff_max")
