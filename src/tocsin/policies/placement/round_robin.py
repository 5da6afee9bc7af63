"""Round robin (RR; section 5.1): the brokers in turn, in the order of their names.

The turn is the name that was chosen last, so a broker that comes or goes does not upset the others' turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tocsin.policies.base import Assign, Decision, Newcomer, PlacementView, Reason, Skip


@dataclass(frozen=True, slots=True)
class RoundRobin:
    def place(self, who: Newcomer, view: PlacementView, rng: Random, now: float) -> Decision:
        names = sorted(b.name for b in view.brokers)
        if not names:
            return Skip(who.user, Reason.NO_CANDIDATE)
        following = next((name for name in names if view.last is not None and name > view.last), names[0])
        return Assign(who.user, following, Reason.NEXT_IN_TURN)
