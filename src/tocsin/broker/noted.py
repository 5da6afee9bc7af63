"""What a broker has to tell the coordinator, kept until the coordinator has taken it. No input or output here.

A report carries everything that is noted, in pieces where it is long; what a piece carried is forgotten when it is
answered, unless it was noted anew meanwhile. What is noted again for the same subscription replaces what was noted
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from tocsin.protocol.coordination import Acknowledged, Arrival, Holding, Kept, Load, Outcome, Report

Key = tuple[str, str]
K = TypeVar("K")
V = TypeVar("V")
_PARTS = ("admitted", "kept", "acknowledged", "outcomes", "arrivals", "holdings", "rates")  # in the order of their use


@dataclass(slots=True)
class Noted:
    kept: dict[Key, Kept] = field(default_factory=dict)
    acknowledged: dict[Key, Acknowledged] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    arrivals: dict[str, Arrival] = field(default_factory=dict)
    admitted: dict[str, str] = field(default_factory=dict)

    def report(
        self,
        incarnation: str,
        load: Load,
        holdings: list[Holding],
        rates: dict[str, float],
        *,
        is_full: bool,
        is_draining: bool,
        leaves_in_s: float | None = None,
    ) -> Report:
        return Report(
            incarnation=incarnation,
            load=load,
            is_full=is_full,
            is_draining=is_draining,
            leaves_in_s=leaves_in_s,
            rates=rates,
            holdings=holdings,
            kept=list(self.kept.values()),
            acknowledged=list(self.acknowledged.values()),
            outcomes=list(self.outcomes.values()),
            arrivals=list(self.arrivals.values()),
            admitted=list(self.admitted),
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is noted that outlives this broker; the rest is about who is held here, and how."""
        return not self.kept and not self.acknowledged

    def acknowledge(self, told: Acknowledged) -> None:
        """What takes the place of a step back is one itself: the coordinator has not heard of that one yet."""
        key = (told.user, told.id)
        before = self.acknowledged.get(key)
        is_back = told.is_back or (before is not None and before.is_back)
        self.acknowledged[key] = msgspec.structs.replace(told, is_back=is_back)

    def taken(self, report: Report) -> None:
        """The coordinator has what ``report`` told."""
        for kept in report.kept:
            _forget(self.kept, (kept.user, kept.id), kept)
        for acknowledged in report.acknowledged:
            _forget(self.acknowledged, (acknowledged.user, acknowledged.id), acknowledged)
        for outcome in report.outcomes:
            _forget(self.outcomes, outcome.number, outcome)
        for arrival in report.arrivals:
            _forget(self.arrivals, arrival.user, arrival)
        for user in report.admitted:
            self.admitted.pop(user, None)


def _forget(noted: dict[K, V], key: K, told: V) -> None:
    if noted.get(key) is told:
        del noted[key]


def pieces(report: Report, piece_bytes: int) -> Iterator[Report]:
    """The report, cut where it is too long for one request; only the first piece is full, the others add to it."""
    if len(msgspec.json.encode(report)) <= piece_bytes:
        yield report
        return
    parts: dict[str, Any] = {}
    size = 0
    for name in _PARTS:
        told = getattr(report, name)
        for one in told.items() if name == "rates" else told:
            more = len(msgspec.json.encode(one))
            if size and size + more > piece_bytes:
                yield _piece(report, parts)
                report, parts, size = msgspec.structs.replace(report, is_full=False), {}, 0
            parts.setdefault(name, []).append(one)
            size += more
    yield _piece(report, parts)


def _piece(report: Report, parts: dict[str, Any]) -> Report:
    told = {name: parts.get(name, ()) for name in _PARTS}
    return msgspec.structs.replace(report, **{**told, "rates": dict(told["rates"])})
