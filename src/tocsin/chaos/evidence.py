"""What a run saw, as plain values: what went in and was acknowledged, who had asked for what, and what came out.

Moments are numbers of one counter of the process that saw everything, so that before and after need no clock.
Whoever sends numbers what it sends, one after the other, and waits for each answer before the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Name = tuple[str, int]
"""Who sent something, and its number among what they sent."""


@dataclass(frozen=True, slots=True)
class Record:
    """``is_certain`` where the cluster acknowledged it; else it may or may not be in the dataset."""

    source: str
    number: int
    kind: str
    value: float
    sent: int
    is_certain: bool = True

    @property
    def name(self) -> Name:
        return self.source, self.number


@dataclass(frozen=True, slots=True)
class Publication:
    """``position`` is the one that was acknowledged; None where no acknowledgement came."""

    topic: str
    source: str
    number: int
    position: str | None

    @property
    def name(self) -> Name:
        return self.source, self.number


@dataclass(frozen=True, slots=True)
class Topic:
    """Everything that is published under a name."""

    name: str


@dataclass(frozen=True, slots=True)
class ByKind:
    """Records of a kind."""

    kind: str


@dataclass(frozen=True, slots=True)
class Above:
    """Records with a value above a bound."""

    bound: float


Wish = Topic | ByKind | Above


@dataclass(frozen=True, slots=True)
class Got:
    """A notification, as the application was given it."""

    source: str
    number: int
    through: str

    @property
    def name(self) -> Name:
        return self.source, self.number


@dataclass(frozen=True, slots=True)
class Hole:
    """A gap, as the application was told it."""

    after: str
    through: str
    count: int | None
    reason: str


@dataclass(slots=True)
class Interval:
    """One subscription from its acknowledgement to its end, through however many connections.

    ``stood`` is the moment of the acknowledgement, ``position`` what it gave; ``ended`` the moment when the
    application ended it. ``excused`` are the reasons for which it may have been told of a gap.
    """

    id: str
    wish: Wish
    stood: int | None = None
    position: str = ""
    ended: int | None = None
    seen: list[Got | Hole] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Evidence:
    records: Sequence[Record]
    publications: Sequence[Publication]
    intervals: Sequence[Interval]
    faults: Mapping[str, int] = field(default_factory=dict)
