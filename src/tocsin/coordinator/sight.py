"""What balancing sees of the world: copied in one step of the event loop, read by a thread.

* Online users of live brokers that follow something count, each where it is placed. Whoever is online elsewhere is
  about to leave.
* Somebody on a move counts at its destination and stays there; so does who is planned to go there by a drain or by
  somebody's wish.
* A move that balancing planned and that has not begun may still be replaced: that user is where it is. Yet ``heading``
  counts it at its destination, so that a plan under way is not replaced as long as it leads to balance.
* Nobody is moved whose last move ended less than ``rest_s`` ago.
* Of a stream's rates, as several brokers measured them, the highest counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.world import World
from tocsin.policies.base import usual_capacity
from tocsin.policies.multistage.snapshot import Small, Snapshot

Streams = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """``going`` and ``planned`` are users and destinations; ``unheard`` brokers have yet to report."""

    at: float
    capacities: Mapping[str, float]
    holdings: Mapping[str, Mapping[str, Streams]]
    strangers: Mapping[str, Set[str]]
    rates: tuple[Mapping[str, float], ...]
    going: Mapping[str, str]
    planned: Mapping[str, str]
    tried_at: Mapping[str, float]
    unheard: tuple[str, ...]

    def snapshot(self, rest_s: float) -> Snapshot:
        homes, wants = dict[str, str](), dict[str, Set[str]]()
        for broker, held in self.holdings.items():
            for user, streams in held.items():
                home = self._home(user, broker)
                if streams and home is not None and user not in self.strangers[broker]:
                    homes[user], wants[user] = home, frozenset(streams)
        resting = {user for user, at in self.tried_at.items() if 0 <= self.at - at < rest_s}
        return Snapshot.from_names(homes, wants, self._rates(), self.capacities, resting | self.going.keys())

    def heading(self, snapshot: Snapshot) -> Small:
        """Everyone's broker when what is planned has been done."""
        place = {name: j for j, name in enumerate(snapshot.brokers)}
        after = snapshot.assigned.copy()
        for i, user in enumerate(snapshot.subscribers):
            to = place.get(self.planned.get(user, ""))
            after[i] = after[i] if to is None else to
        return np.ascontiguousarray(after, np.int32)

    def _home(self, user: str, broker: str) -> str | None:
        to = self.going.get(user, broker)
        return next((name for name in (to, broker) if name in self.capacities), None)

    def _rates(self) -> dict[str, float]:
        highest = dict[str, float]()
        for told in self.rates:
            for stream, rate in told.items():
                highest[stream] = max(rate, highest.get(stream, 0.0))
        return highest


def look(world: World, now: float) -> Sight:
    """Copies, and nothing that takes long."""
    here = [broker for broker in world.brokers if not broker.is_ended]
    active = list(world.moves.active.values())
    may_give_way = {m.user: m.to for m in active if not m.is_started and world.kind_of(m) is PlanKind.BALANCE}
    unheard = [b.name for b in here if b.state is BrokerState.SILENT or not world.presence[b.name].reports]
    return Sight(
        at=now,
        capacities=_capacities({b.name: b.capacity for b in here if b.state is BrokerState.LIVE}),
        holdings={b.name: dict(world.presence[b.name].holdings) for b in here},
        strangers={b.name: world.presence[b.name].holdings.keys() - world.users.residents[b.name] for b in here},
        rates=tuple(dict(world.presence[b.name].rates) for b in here),
        going={m.user: m.to for m in active if m.user not in may_give_way},
        planned=may_give_way,
        tried_at=dict(world.tried_at),
        unheard=tuple(sorted(unheard)),
    )


def _capacities(told: Mapping[str, float | None]) -> dict[str, float]:
    usual = usual_capacity(told.values())
    return {name: usual if capacity is None else capacity for name, capacity in told.items()}
