"""Choosing brokers for users, and putting them there: make before break.

Whoever else may hold a user goes on holding it until the user's own broker has said that it does. Before that, an
execution at the data cluster would find nobody subscribed.
"""

from __future__ import annotations

from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.users import User
from tocsin.coordinator.world import World
from tocsin.policies.base import Assign, BrokerView, Newcomer, PlacementView


class Placing:
    def __init__(self, world: World) -> None:
        self._world = world

    def choose(self, user: User) -> Assign | None:
        """The policy's answer among live brokers, or among silent ones where none lives."""
        world = self._world
        view = PlacementView(self._candidates(), world.counters.last_placed)
        who = Newcomer(user.name, user.location, user.latencies_ms)
        decision = world.policy.place(who, view, world.rng, world.now)
        if not isinstance(decision, Assign):
            return None
        world.counters.last_placed = decision.broker
        world.count()
        world.presence[decision.broker].newcomers += 1
        return decision

    def place(self, user: User) -> bool:
        """Put ``user`` where the policy says; whether there was a place."""
        decision = self.choose(user)
        if decision is not None:
            self.put(user, decision.broker, decision.reason)
        return decision is not None

    def put(self, user: User, broker: str, reason: str, version: int | None = None) -> None:
        """Place ``user`` at ``broker``, which has adopted it already where ``version`` is given."""
        world = self._world
        world.users.move(user, broker, version or world.next_version(), reason)
        if version is None:
            world.adopt(user, broker, user.version)
        self.settle(user)

    def restamp(self, user: User) -> None:
        """Leave ``user`` where it is under a new version, so that what went out under an older one is void."""
        world = self._world
        if user.broker is not None:
            world.users.move(user, user.broker, world.next_version(), user.reason)
            world.adopt(user, user.broker, user.version)

    def let_go(self, user: User, broker: str) -> None:
        """``broker`` may hold ``user``, who belongs elsewhere."""
        self._world.users.linger(user, broker)
        self.settle(user)

    def settle(self, user: User) -> None:
        """Have everybody else let go of a user who is held; nothing to do where they were told already."""
        if self.is_held(user):
            for broker in user.stale:
                if not self._world.awaits_release(user, broker):
                    self._world.release(user, broker)

    def is_held(self, user: User) -> bool:
        """Whether the user's broker has adopted it under its present version; or nobody need, for it was removed."""
        return user.is_removed or self._world.has_adopted(user.name, user.broker, user.version)

    def _candidates(self) -> tuple[BrokerView, ...]:
        for state in (BrokerState.LIVE, BrokerState.SILENT):
            found = [b.name for b in self._world.brokers if b.state is state]
            if found:
                return tuple(self._view(name) for name in sorted(found))
        return ()

    def _view(self, name: str) -> BrokerView:
        broker, presence = self._world.brokers[name], self._world.presence[name]
        load = presence.load.model_in_per_s + presence.load.model_out_per_s
        users = len(self._world.users.residents[name]) + self._world.moves.arriving[name]
        return BrokerView(name, broker.location, load, users, presence.newcomers, broker.capacity)
