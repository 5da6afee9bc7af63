"""What balancing decided and why, also where it decided to do nothing."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Waits(StrEnum):
    """Why the framework was not even asked."""

    NO_BROKER = "no broker lives"
    UNHEARD = "a broker has not reported"
    GATHERING = "loads are not known for long enough"
    FAILED = "an error"


class Figures(msgspec.Struct, frozen=True):
    """``maximum`` is the highest level, load by capacity; ``ratio`` what that is of its lower bound."""

    maximum: float
    ratio: float
    mean: float
    cov: float
    total: float


class Discarded(msgspec.Struct, frozen=True):
    """A plan that was made and not carried out; ``after`` is what would have come of it."""

    policy: str
    reason: str
    moves: int
    after: Figures


class Decision(msgspec.Struct, frozen=True):
    """``mean`` and ``cov`` are what thresholds were held against; ``plan`` is where its moves can be seen.

    ``rejected`` counts the candidates that were looked at and refused, by reason; ``discarded`` plans were made and
    not carried out. ``is_asked``: somebody wanted it.
    """

    at: float
    action: str
    reason: str
    is_asked: bool = False
    mean: float = 0.0
    cov: float = 0.0
    users: int = 0
    policy: str | None = None
    plan: str | None = None
    moves: int = 0
    before: Figures | None = None
    after: Figures | None = None
    rejected: dict[str, int] = {}
    discarded: list[Discarded] = []
    milliseconds: float = 0.0


class Trial(msgspec.Struct, frozen=True):
    """What a policy would do now."""

    policy: str
    status: str
    reason: str
    moves: int
    after: Figures
    rejected: dict[str, int]
    milliseconds: float


class Trials(msgspec.Struct, frozen=True):
    """Policies compared on what there is ``now``; ``pinned`` users were moved a moment ago or are on a move."""

    brokers: int
    users: int
    streams: int
    pinned: int
    now: Figures
    trials: list[Trial]
    plan: str | None = None
