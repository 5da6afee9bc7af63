"""What a page shows at one moment: plain values, made once a second and sent to everyone who looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

UNKNOWN = "unknown"


class BrokerSample(msgspec.Struct, frozen=True):
    """``bytes_in`` and ``bytes_out`` are model bytes a second, whose sum is the load that balancing goes by.

    ``lost`` are notifications shed and gaps told in the last minute. While the coordinator does not answer, brokers are
    as it last told, and their state is ``unknown``.
    """

    name: str
    state: str
    users: int
    online: int
    bytes_in: float
    bytes_out: float
    loop_lag_s: float
    capacity: float | None
    location: tuple[float, float] | None
    deliveries_per_s: float = 0.0
    lost: int = 0

    @property
    def load(self) -> float:
        return self.bytes_in + self.bytes_out

    @property
    def is_serving(self) -> bool:
        return self.state not in ("dead", "gone")

    @property
    def is_balanced(self) -> bool:
        """Whether the coordinator places people there; one that drains is as good as gone."""
        return self.state in ("live", "silent")

    @property
    def is_told(self) -> bool:
        return self.state != UNKNOWN


class Figures(msgspec.Struct, frozen=True):
    """Of the levels (load by relative capacity) of brokers among which load is balanced."""

    cov: float = 0.0
    maximum: float = 0.0
    mean: float = 0.0
    total: float = 0.0


class ChannelSample(msgspec.Struct, frozen=True):
    """Rates and means are of the last minute, so that a channel that runs now and then does not flicker.

    ``latency_ms`` is from a record's acceptance to its result, the wait for a tick included; ``lost`` are results of
    which brokers were told a gap in that minute. While the data cluster does not answer, channels are as it last told,
    their state is ``unknown``, and so are lag, rates and means.
    """

    name: str
    mode: str
    state: str
    strategy: str
    subscriptions: int
    backends: int
    executions: int
    lag_s: float | None
    results_per_s: float | None
    matched_per_s: float | None
    considered_per_s: float | None
    execution_ms: float | None
    problem: str | None
    latency_ms: float | None = None
    lost: int = 0


class ClusterSample(msgspec.Struct, frozen=True):
    is_ready: bool
    reason: str
    started_at: str | None = None
    spark: dict[str, Any] = {}
    totals: dict[str, Any] = {}
    latency_ms: float | None = None


class Alert(msgspec.Struct, frozen=True):
    """``id`` stays the same while it lasts."""

    id: str
    text: str
    since: float = 0.0


class Sample(msgspec.Struct, frozen=True):
    """``n`` counts samples of one run of the dashboard. Decisions, plans and moves are those that changed.

    Without ``figures`` nobody told the brokers' loads.
    """

    n: int
    at: float
    brokers: list[BrokerSample]
    figures: Figures | None
    channels: list[ChannelSample]
    cluster: ClusterSample
    policies: dict[str, Any] | None = None
    decisions: list[dict[str, Any]] = []
    plans: list[dict[str, Any]] = []
    moves: list[dict[str, Any]] = []
    alerts: list[Alert] = []
    problems: list[str] = []


def figures_of(brokers: Sequence[BrokerSample]) -> Figures:
    """Weighted by capacity, where a broker that names none is like the average of those that do."""
    counted = [broker for broker in brokers if broker.is_balanced]
    if not counted:
        return Figures()
    named = [broker.capacity for broker in counted if broker.capacity]
    usual = sum(named) / len(named) if named else 1.0
    weights = [(broker.capacity or usual) / usual for broker in counted]
    levels = [broker.load / weight for broker, weight in zip(counted, weights, strict=True)]
    total = sum(broker.load for broker in counted)
    mean = total / sum(weights)
    spread = sum(w * (level - mean) ** 2 for w, level in zip(weights, levels, strict=True)) / sum(weights)
    return Figures(math.sqrt(spread) / mean if mean > 0 else 0.0, max(levels), mean, total)
