"""Random placement (RND; section 5.1): every candidate is equally likely."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.base import Assign, Decision, Newcomer, PlacementView, Reason, Skip


@dataclass(frozen=True, slots=True)
class RandomBroker:
    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        names = sorted(b.name for b in view.brokers)
        if not names:
            return Skip(who.user, Reason.NO_CANDIDATE)
        return Assign(who.user, rng.choice(names), Reason.DRAWN)
