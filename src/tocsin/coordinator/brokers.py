"""A broker as the coordinator keeps it, and as it last showed itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from tocsin.coordinator.liveness import Signs
from tocsin.policies.base import Point
from tocsin.protocol.coordination import BrokerInfo, Load


class BrokerState(StrEnum):
    LIVE = "live"
    SILENT = "silent"  # not heard for a while: takes no newcomers
    DRAINING = "draining"  # its users are moved away
    DEAD = "dead"  # its users are placed elsewhere
    GONE = "gone"  # dead on purpose: drained, or removed by somebody


LEGAL: Mapping[BrokerState, frozenset[BrokerState]] = {
    BrokerState.LIVE: frozenset({BrokerState.SILENT, BrokerState.DRAINING, BrokerState.DEAD, BrokerState.GONE}),
    BrokerState.SILENT: frozenset({BrokerState.LIVE, BrokerState.DRAINING, BrokerState.DEAD, BrokerState.GONE}),
    BrokerState.DRAINING: frozenset({BrokerState.LIVE, BrokerState.GONE}),  # live again in a new life
    BrokerState.DEAD: frozenset({BrokerState.LIVE, BrokerState.GONE}),
    BrokerState.GONE: frozenset({BrokerState.LIVE}),
}
ENDED = (BrokerState.DEAD, BrokerState.GONE)
MEMBERS = (BrokerState.LIVE, BrokerState.SILENT)  # of the topology: topics are owned by these


class Broker(msgspec.Struct):
    """Durable. ``is_attached``: the data cluster may hold subscriptions of this broker."""

    name: str
    url: str
    incarnation: str
    state: BrokerState = BrokerState.LIVE
    location: Point | None = None
    capacity: float | None = None
    is_attached: bool = True
    ended_at: float = 0.0
    plan: str | None = None  # of its drain

    @property
    def info(self) -> BrokerInfo:
        return BrokerInfo(self.name, self.url)

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED

    def become(self, state: BrokerState) -> bool:
        """Whether that was a change; RuntimeError where it may not become that."""
        if state is self.state:
            return False
        if state not in LEGAL[self.state]:
            raise RuntimeError(f"broker {self.name!r}: {self.state} does not become {state}")
        self.state = state
        return True


@dataclass(slots=True)
class Presence:
    """What a broker has told since it registered with this run of the coordinator; nothing of it is durable."""

    signs: Signs
    is_known: bool = False  # it has registered since the coordinator started
    load: Load = field(default_factory=Load)
    rates: dict[str, float] = field(default_factory=dict)
    holdings: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of online users, the streams
    newcomers: int = 0
    leaves_s: float | None = None  # when it ends, awake seconds, where it said so
    reports: int = 0

    @property
    def online(self) -> int:
        """How many are connected: users, or connections, whichever are more."""
        return max(len(self.holdings), self.load.connections)

    def rate(self, told: Mapping[str, float]) -> None:
        """Take the rates of streams; one without a rate need not be known."""
        for stream, rate in told.items():
            if rate > 0:
                self.rates[stream] = rate
            else:
                self.rates.pop(stream, None)
