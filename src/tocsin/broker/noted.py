"""What a broker has to tell the coordinator, kept until the coordinator has taken it. No input or output here.

A report carries everything that is noted, in pieces where it is long; what a piece carried is forgotten when it is
answered, unless it was noted anew meanwhile. What is noted again for the same subscription replaces what was noted
before.

Subscriptions made and ended are noted up to a bound; what was noted is never dropped for it. An end is noted though
this broker never told of the subscription: another, or an earlier life, may have, or the answer to a report was lost.
The rest is bounded by who and what is held here, since an acknowledgement goes when its subscription ends; but steps
back stay.
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
    max_bytes: int  # of what is kept or ended, as JSON
    kept_bytes: int = 0
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

    def keep(self, kept: Kept) -> bool:
        """Note a subscription made or ended, unless there is no room. In the place of a longer word there always is."""
        key = (kept.user, kept.id)
        more = _size(kept) - _size(self.kept.get(key))
        if more > 0 and self.kept_bytes + more > self.max_bytes:
            return False
        self.kept[key] = kept
        self.kept_bytes += more
        if kept.wanted is None and not self._is_back(key):  # a step back counts for whoever asks for it again
            self.acknowledged.pop(key, None)
        return True

    def acknowledge(self, told: Acknowledged) -> None:
        """What takes the place of a step back is one itself: the coordinator has not heard of that one yet."""
        key = (told.user, told.id)
        self.acknowledged[key] = msgspec.structs.replace(told, is_back=told.is_back or self._is_back(key))

    def _is_back(self, key: Key) -> bool:
        noted = self.acknowledged.get(key)
        return noted is not None and noted.is_back

    def taken(self, report: Report) -> None:
        """The coordinator has what ``report`` told."""
        for kept in report.kept:
            if _forget(self.kept, (kept.user, kept.id), kept):
                self.kept_bytes -= _size(kept)
        for acknowledged in report.acknowledged:
            _forget(self.acknowledged, (acknowledged.user, acknowledged.id), acknowledged)
        for outcome in report.outcomes:
            _forget(self.outcomes, outcome.number, outcome)
        for arrival in report.arrivals:
            _forget(self.arrivals, arrival.user, arrival)
        for user in report.admitted:
            self.admitted.pop(user, None)


def _forget(noted: dict[K, V], key: K, told: V) -> bool:
    """Whether it was the last word."""
    if noted.get(key) is not told:
        return False
    del noted[key]
    return True


def _size(kept: Kept | None) -> int:
    return 0 if kept is None else len(msgspec.json.encode(kept))


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
