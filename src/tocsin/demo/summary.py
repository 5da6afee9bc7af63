"""What the demonstration has to say, while it runs and at the end: plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.demo.counters import Counted
from tocsin.demo.heard import Connected
from tocsin.demo.tally import Tally, quantiles_ms

FEEDING = "Feeding"  # the phase in which the pace depends on the lag


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """A notification is a row for one subscription, however many share it.

    Latency runs from a record's receipt to the result in the broker's hands, the wait for a tick included.
    """

    channel: str
    mode: str
    strategy: str
    subscriptions: int
    distinct: int
    executions: int
    failed: int
    rows: int
    notifications: int
    p50_ms: float | None
    p99_ms: float | None
    lag_s: float

    @property
    def is_periodic(self) -> bool:
        return self.mode != "continuous"


@dataclass(frozen=True, slots=True)
class Summary:
    phase: str
    seconds: float
    records: Mapping[str, int]
    channels: Sequence[ChannelLine]
    notices: int
    warm_up_reports: int = 0
    held_s: float = 0.0
    is_cut: bool = False
    late_subscriptions: int = 0
    other_subscriptions: int = 0  # that the cluster has besides: those of its other brokers
    problems: Sequence[str] = field(default_factory=tuple)
    connected: Connected = field(default_factory=Connected)

    @property
    def has_lagged(self) -> bool:
        return self.is_cut or self.held_s > 0.1 * self.seconds


def channel_line(
    view: Mapping[str, Any], tally: Tally, counted: Counted, accepted_at: Mapping[str, float], last: int | None
) -> ChannelLine:
    """One channel, from what the cluster says of it and what came; latency of the ``last`` rows, or of all."""
    p50, p99 = quantiles_ms(tally.latencies_s(accepted_at, last)) or (None, None)
    return ChannelLine(
        channel=view["name"],
        mode=view["mode"],
        strategy=view["strategy"],
        subscriptions=view["subscriptions"],
        distinct=view["backends"],
        executions=counted.executions,
        failed=counted.failed,
        rows=tally.rows,
        notifications=tally.notifications,
        p50_ms=p50,
        p99_ms=p99,
        lag_s=round(view["lag_s"], 1),
    )
