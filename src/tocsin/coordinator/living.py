"""Brokers that come, report, fall silent, die, drain and return."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, islice

from tocsin.coordinator.brokers import Broker, BrokerState, Presence
from tocsin.coordinator.events import Ask, Detach, Forget, Restart, Say, WantedMove
from tocsin.coordinator.liveness import Signs, Verdict
from tocsin.coordinator.moving import Moving
from tocsin.coordinator.placing import Placing
from tocsin.coordinator.plans import Plan, PlanKind
from tocsin.coordinator.world import World
from tocsin.errors import AlreadyExists, NotFound
from tocsin.protocol.coordination import Registration

_HOUSED_AT_ONCE = 500  # about 20 ms with the writing of their rows
_LOOKED_AT = 10_000  # users a tick, whether others hold them


@dataclass(slots=True)
class _Estate:
    """What an ended broker left at the data cluster, from its end on: however often it is said to have ended."""

    unheld: list[str]  # users of its that no other is known to hold
    is_let_go: bool = False  # it is being removed


class Living:
    def __init__(self, world: World, placing: Placing, moving: Moving) -> None:
        self._world, self._placing, self._moving = world, placing, moving
        self._tried_s: dict[str, float] = {}  # drains: when a user's last move was proposed
        self._estates: dict[str, _Estate] = {}  # of ended brokers; none after a restart
        self.is_housing = False  # whether there may be more to place, and a place for them

    def find(self, name: str) -> Broker:
        broker = self._world.brokers.get(name)
        if broker is None:
            raise NotFound("broker", name, self._world.brokers.names())
        return broker

    # --- coming ----------------------------------------------------------------------------------------

    def register(self, name: str, told: Registration) -> None:
        """A broker begins, or begins again to talk to us: it hears everything that concerns it.

        AlreadyExists while another of its name is heard from another address: the two would take turns, and users
        and topics with them.
        """
        self._check_name(name, told)
        world, before = self._world, self._world.members()
        broker = world.brokers.get(name) or Broker(name, told.url, told.incarnation)
        if broker.incarnation != told.incarnation:
            world.users.forget_broker(name)
        if broker.state is not BrokerState.DRAINING or broker.incarnation != told.incarnation:
            broker.become(BrokerState.LIVE)
        broker.incarnation, broker.url, broker.is_attached = told.incarnation, told.url, True
        broker.location, broker.capacity = told.location, told.capacity
        world.brokers.put(name, broker)
        self._estates.pop(name, None)
        world.lose_sight(name)
        world.presence[name] = Presence(Signs(world.clock.now_s), is_known=True)
        self._brief(broker)
        if world.members() != before:
            world.tell_topology(n for n in world.brokers.names() if n != name)
        self.house_the_homeless()

    def _check_name(self, name: str, told: Registration) -> None:
        world, known = self._world, self._world.brokers.get(name)
        if known is None or known.is_ended or told.url == known.url or told.incarnation == known.incarnation:
            return
        presence = world.presence[name]
        if presence.is_known and presence.signs.verdict(world.clock.now_s, world.rules) is Verdict.WELL:
            raise AlreadyExists("broker", name, f"it lives at {known.url}: give this one another name, or end that one")

    def _brief(self, broker: Broker) -> None:
        world = self._world
        world.effects.append(Restart(broker.name, broker.incarnation))
        world.telling.forget(broker.name)
        world.tell_topology([broker.name])
        for user in sorted(world.users.lingering[broker.name]):
            if self._placing.is_held(world.users[user]):
                world.release(world.users[user], broker.name)
        for user in sorted(world.users.residents[broker.name]):
            world.adopt(world.users[user], broker.name, world.users[user].version)
        self._moving.returned(broker.name)

    def heard(self, broker: Broker, is_draining: bool, leaves_in_s: float | None) -> None:
        world, presence = self._world, self._world.presence[broker.name]
        presence.signs.heard(world.clock.now_s)
        if leaves_in_s is not None:
            presence.leaves_s = world.clock.now_s + leaves_in_s
        if broker.state is BrokerState.SILENT:
            broker.become(BrokerState.LIVE)
            world.brokers.touch(broker.name)
        if is_draining:
            self.drain(broker)

    # --- going -----------------------------------------------------------------------------------------

    def look(self) -> None:
        """Judge everyone by their silence."""
        world = self._world
        for broker in [b for b in world.brokers if not b.is_ended]:
            verdict = world.presence[broker.name].signs.verdict(world.clock.now_s, world.rules)
            if verdict is Verdict.DEAD:
                self.end(broker, BrokerState.GONE if broker.state is BrokerState.DRAINING else BrokerState.DEAD)
            elif verdict is Verdict.SILENT:
                world.effects.append(Ask(broker.name, broker.url))
                if broker.state is BrokerState.LIVE:
                    broker.become(BrokerState.SILENT)
                    world.brokers.touch(broker.name)

    def distrust(self, name: str) -> None:
        """The broker has to register again, and then hears everything anew."""
        if name in self._world.presence:
            self._world.presence[name].is_known = False
            self._world.telling.forget(name)

    def refused(self, name: str) -> None:
        """Nobody listens at the broker's address."""
        presence = self._world.presence.get(name)
        if presence is not None and presence.signs.refused_s is None:
            presence.signs.refused_s = self._world.clock.now_s

    def end(self, broker: Broker, state: BrokerState) -> None:
        """Its users, offline ones included, are placed elsewhere, and what it held is let go."""
        world, before, had_ended = self._world, self._world.members(), broker.is_ended
        if not broker.become(state):
            return
        broker.ended_at, broker.plan = world.now, None
        world.brokers.touch(broker.name)
        world.lose_sight(broker.name)
        world.presence[broker.name] = Presence(Signs(world.clock.now_s))
        world.effects.append(Forget(broker.name))
        world.telling.forget(broker.name)
        if world.members() != before:
            world.tell_topology()
        self._moving.destination_lost(broker.name, "the destination died")
        if not had_ended:
            users = [*world.users.residents[broker.name], *world.users.lingering[broker.name]]
            self._estates[broker.name] = _Estate(users)
        self.house_the_homeless()
        self.let_go()

    def let_go(self) -> None:
        """Have removed what ended brokers left at the data cluster, once others hold it.

        Before that, an execution would find nobody subscribed, and what it should have told would be lost. A broker
        that died may have held what nobody told us of: its users get time to bring it elsewhere.
        """
        world = self._world
        ended = [b for b in world.brokers if b.is_ended and b.is_attached and not self._may_be_brought(b)]
        if not ended:
            return
        for broker in ended:
            if broker.name not in self._estates:
                self._estates[broker.name] = _Estate(world.users.names())  # nobody knows after a restart
            estate = self._estates[broker.name]
            for _ in range(min(len(estate.unheld), _LOOKED_AT)):
                if not self._is_housed(estate.unheld[-1]):
                    break
                estate.unheld.pop()
            if not estate.unheld and not estate.is_let_go:
                estate.is_let_go = True
                world.effects.append(Detach(broker.name))

    def _may_be_brought(self, broker: Broker) -> bool:
        lately = self._world.now - broker.ended_at < self._world.rules.detach_after_s
        return broker.state is BrokerState.DEAD and lately

    def _is_housed(self, name: str) -> bool:
        """Whether the user's broker has adopted it, or the user is gone."""
        user = self._world.users.get(name)
        return user is None or self._placing.is_held(user)

    def detached(self, name: str) -> None:
        self._estates.pop(name, None)
        broker = self._world.brokers.get(name)
        if broker is not None and broker.is_ended:
            broker.is_attached = False
            self._world.brokers.touch(name)

    def house_the_homeless(self) -> None:
        """Place those whose broker has ended, or who have none, if anywhere there is a place.

        So many at once as others can wait for; whoever asks for a place meanwhile gets one at once.
        """
        world = self._world
        ended = [world.users.residents[b.name] for b in world.brokers if b.is_ended]
        some = sorted(islice(chain(*ended, world.users.homeless), _HOUSED_AT_ONCE))
        self.is_housing = False
        for name in some:
            user = world.users[name]
            if not self._moving.source_died(user) and not self._placing.place(user):
                return
        self.is_housing = len(some) == _HOUSED_AT_ONCE

    # --- draining --------------------------------------------------------------------------------------

    def drain(self, broker: Broker) -> None:
        world = self._world
        if broker.is_ended or not broker.become(BrokerState.DRAINING):
            return
        broker.plan = self._new_plan(broker).id
        world.brokers.touch(broker.name)
        world.tell_topology()
        self._moving.destination_lost(broker.name, "the destination drains")
        world.effects.append(self._outlook(broker))
        self.empty()

    def _outlook(self, broker: Broker) -> Say:
        """Whether the broker will be empty when it leaves."""
        world, presence = self._world, self._world.presence[broker.name]
        begun = f"broker {broker.name} drains, with {presence.online:,} online"
        if not any(world.can_take(name) for name in world.brokers.names()):
            return Say(f"{begun}; there is no other that could take them", is_warning=True)
        if presence.leaves_s is None:
            return Say(f"{begun}; moves begin at {world.rules.moves_per_s:g} a second")
        left_s = presence.leaves_s - world.clock.now_s
        most = int(max(world.rules.moves_per_s, world.rules.drain_moves_per_s) * left_s)
        if presence.online <= most:
            return Say(f"{begun}; it leaves in {left_s:g} s")
        return Say(
            f"{begun}; it leaves in {left_s:g} s, and at most {most:,} can be moved by then "
            "(coordinator.drain_moves_per_s, broker.drain_timeout)",
            is_warning=True,
        )

    def empty(self) -> None:
        """Move users away from draining brokers, online ones first, as many at a time as may be under way."""
        for broker in [b for b in self._world.brokers if b.state is BrokerState.DRAINING]:
            online = self._world.presence[broker.name].holdings
            waiting = ((user not in online, user) for user in self._world.users.residents[broker.name])
            for _, user in nsmallest(self._moving.free, (one for one in waiting if self._may_try(one[1]))):
                if not self._move_away(broker, user):
                    return

    def _may_try(self, user: str) -> bool:
        world = self._world
        tried_s = self._tried_s.get(user)
        is_pause_over = tried_s is None or world.clock.now_s - tried_s >= world.rules.retry_s
        return user not in world.moves.active and is_pause_over

    def _move_away(self, broker: Broker, name: str) -> bool:
        """Whether there was somewhere to go."""
        world = self._world
        decision = self._placing.choose(world.users[name])
        if decision is None or not world.can_take(decision.broker):
            return False
        self._tried_s[name] = world.clock.now_s
        plan = broker.plan or self._new_plan(broker).id
        self._moving.propose(
            plan, WantedMove(name, decision.broker, f"{PlanKind.DRAIN} {broker.name}: {decision.reason}")
        )
        return True

    def _new_plan(self, broker: Broker) -> Plan:
        return self._world.new_plan(f"{PlanKind.DRAIN} {broker.name}", PlanKind.DRAIN)

    def forget(self) -> None:
        """Brokers that ended long ago and have nothing any more."""
        world = self._world
        self._tried_s = {u: at for u, at in self._tried_s.items() if world.clock.now_s - at < world.rules.retry_s}
        for broker in list(world.brokers):
            is_old = broker.is_ended and world.now - broker.ended_at >= world.rules.forget_broker_s
            if is_old and not broker.is_attached and not world.users.residents[broker.name]:
                world.users.forget_broker(broker.name)
                world.brokers.drop(broker.name)
                del world.presence[broker.name]
