"""A plan: moves that were wanted together; and what the coordinator counts."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tocsin.coordinator.choices import BalancingChoice
from tocsin.coordinator.rows import Rows


class PlanKind(StrEnum):
    """Who wanted it. Of those that balance, a new one takes the place of the last."""

    ASKED = "asked"
    DRAIN = "drain"
    BALANCE = "balance"


class Plan(msgspec.Struct):
    id: str
    cause: str
    created_at: float
    kind: PlanKind = PlanKind.ASKED


class Plans(Rows[Plan]):
    def __init__(self) -> None:
        super().__init__("plan", Plan)

    def trim(self, kept: int, used: set[str]) -> None:
        """Forget the oldest that no move belongs to, beyond ``kept``."""
        for plan in list(self)[: max(0, len(self) - kept)]:
            if plan.id not in used:
                self.drop(plan.id)


class ChosenPolicy(msgspec.Struct):
    """A placement policy chosen while running, in place of ``configured``."""

    name: str
    options: dict[str, str]
    configured: str


class ChosenBalancing(msgspec.Struct):
    """Likewise how to balance."""

    choice: BalancingChoice
    configured: str


class Counters(msgspec.Struct):
    """Durable. ``life`` counts the coordinator's starts, so that its instructions' numbers never come again."""

    life: int = 0
    version: int = 0
    moves: int = 0
    plans: int = 0
    last_placed: str | None = None
    policy: ChosenPolicy | None = None
    balancing: ChosenBalancing | None = None
