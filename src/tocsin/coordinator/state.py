"""The coordinator's state: a pure machine. Events and the time go in, effects come out.

The legal transitions of a broker are the table ``brokers.LEGAL``, those of a move ``moves.LEGAL``. What a
piece knows how to do is in its own module: ``living`` (brokers), ``keeping`` (users), ``placing``, ``moving``.

Rules kept here:

* A user is placed at one broker. Whoever else may hold it is on its list of stale brokers; once the user's own
  broker has adopted it, each of them is told to let go until it has said that it did.
* Every change of a placement has a version higher than any before.
* A move ends in every case: by what the brokers tell, or by its time-out.
* What the rows do not hold may be lost at any moment: the rows alone bring everything about again.

``take_changes`` gives the rows that changed. They are durable before any effect is carried out or any answer
given.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tocsin.coordinator import events
from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.events import Effect, Event
from tocsin.coordinator.keeping import Keeping
from tocsin.coordinator.living import Living
from tocsin.coordinator.moves import MoveState
from tocsin.coordinator.moving import Moving
from tocsin.coordinator.placing import Placing
from tocsin.coordinator.plans import ChosenBalancing, ChosenPolicy, PlanKind
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.telling import Did, Told
from tocsin.coordinator.users import User
from tocsin.coordinator.world import World
from tocsin.policies.base import PlacementPolicy
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import Outcome, Report

_SWEEP_S = 30.0  # between two looks for what has grown old


class State:
    def __init__(self, rules: Rules, policy: PlacementPolicy, rng: Random) -> None:
        self.world = World(rules, policy, rng)
        self.placing = Placing(self.world)
        self.moving = Moving(self.world, self.placing)
        self.living = Living(self.world, self.placing, self.moving)
        self.keeping = Keeping(self.world, self.placing, self.moving)
        self._swept_s, self._swept_at = 0.0, 0.0

    def load(self, rows: Iterable[tuple[str, str, bytes]], now: float) -> None:
        """Begin from what the store has; who was online is not known until brokers have reported."""
        self.world.load(rows)
        self._swept_at = now
        for user in self.world.users:
            user.seen_at = max(user.seen_at, now)
        self.moving.resume()

    def handle(self, event: Event, now: float) -> list[Effect]:
        """What is to be done about ``event``; an error of ours where it asks for what cannot be."""
        self.world.now = now
        self._dispatch(event)
        self.moving.pump()
        effects, self.world.effects = self.world.effects, []
        return effects

    def knows(self, name: str, incarnation: str) -> bool:
        """Whether this life of a broker has registered with this life of the coordinator."""
        broker, presence = self.world.brokers.get(name), self.world.presence.get(name)
        is_same = broker is not None and broker.incarnation == incarnation and not broker.is_ended
        return is_same and presence is not None and presence.is_known

    def _dispatch(self, event: Event) -> None:
        match event:
            case events.BrokerReported(name, report):
                if self.knows(name, report.incarnation):
                    self._report(name, report)
            case events.Ticked(elapsed_s):
                self._tick(elapsed_s)
            case events.PlacementAsked():
                self.keeping.ask(event)
            case events.SubscriptionKept():
                self.keeping.keep(event)
            case events.SubscriptionEnded():
                self.keeping.drop(event)
            case events.UserRemoved(user):
                self.keeping.remove(user)
            case events.PlanProposed():
                self._plan(event)
            case events.PolicyChosen():
                self._choose_policy(event)
            case events.BalancingChosen(choice, configured):
                self.world.counters.balancing = ChosenBalancing(choice, configured)
                self.world.count()
            case _:
                self._broker_event(event)

    def _broker_event(self, event: Event) -> None:
        match event:
            case events.BrokerRegistered(name, registration):
                self.living.register(name, registration)
            case events.BrokerRefused(name):
                self.living.refused(name)
            case events.BrokerDetached(name):
                self.living.detached(name)
            case events.BrokerDistrusted(name):
                self.living.distrust(name)
            case events.DrainAsked(name):
                self.living.drain(self.living.find(name))
            case events.BrokerRemoved(name):
                self.living.end(self.living.find(name), BrokerState.GONE)

    def _report(self, name: str, report: Report) -> None:
        broker, presence = self.world.brokers[name], self.world.presence[name]
        presence.load, presence.newcomers, presence.reports = report.load, 0, presence.reports + 1
        if report.is_full:
            presence.rates.clear()
            self.world.lose_sight(name, {h.user for h in report.holdings if h.streams is not None})
        presence.rate(report.rates)
        self._take(name, report)
        self.living.heard(broker, report.is_draining, report.leaves_in_s)

    def _take(self, name: str, report: Report) -> None:
        for user in report.admitted:
            self.keeping.admit(user, name)
        for kept in report.kept:
            self.keeping.take(kept, name)
        for one in report.acknowledged:
            self.keeping.acknowledge(one)
        for outcome in report.outcomes:
            self._outcome(name, outcome)
        for arrival in report.arrivals:
            self.moving.arrived(name, arrival.user, arrival.version)
        for holding in report.holdings:
            self.keeping.hold(holding, name)

    def _outcome(self, name: str, outcome: Outcome) -> None:
        told = self.world.telling.answered(outcome.number, name)
        if told is None:
            return
        if told.did is Did.SEND:
            self.moving.sent(told, outcome.ok, outcome.reason)
        elif told.did is Did.ADOPT and self.moving.adopted(outcome.number, told, outcome.ok, outcome.reason):
            return
        elif not outcome.ok:
            self.world.retry(told)
        elif user := self.world.users.get(told.user):
            self._obeyed(told, user)

    def _obeyed(self, told: Told, user: User) -> None:
        """A broker has adopted the user; or has let go of it, unless the user has been there again since."""
        if told.did is Did.RELEASE and user.broker != told.broker and told.version == user.version:
            self.world.users.let_go(user, told.broker)
        else:
            self.placing.settle(user)

    def _tick(self, elapsed_s: float) -> None:
        self.world.clock.advance(elapsed_s)
        self.living.look()
        self.moving.expire()
        for told in self.world.telling.due(self.world.clock.now_s):
            self._retry(told)
        self.living.house_the_homeless()
        self.living.let_go()
        self.living.empty()
        if self.world.clock.now_s - self._swept_s >= _SWEEP_S:
            self._sweep()

    def _retry(self, told: Told) -> None:
        user = self.world.users.get(told.user)
        if user is None or (told.did is Did.ADOPT and self.moving.adopt_again(told)):
            return
        if told.did is Did.ADOPT and user.broker == told.broker and user.version == told.version:
            self.world.adopt(user, told.broker, user.version)
        elif told.did is Did.RELEASE:
            self.placing.settle(user)

    def _sweep(self) -> None:
        leapt_s = (self.world.now - self._swept_at) - (self.world.clock.now_s - self._swept_s)
        self._swept_s, self._swept_at = self.world.clock.now_s, self.world.now
        if abs(leapt_s) > _SWEEP_S:
            self.keeping.leap(leapt_s)
        self.keeping.expire()
        self.living.forget()
        self.world.tried_at = {u: at for u, at in self.world.tried_at.items() if u in self.world.users}
        self.world.moves.trim(self.world.rules.kept_moves)
        used = {move.plan for move in self.world.moves} | {b.plan for b in self.world.brokers if b.plan}
        self.world.plans.trim(self.world.rules.kept_plans, used)

    def _plan(self, proposed: events.PlanProposed) -> None:
        plan = self.world.new_plan(proposed.cause, proposed.kind).id
        if proposed.kind is PlanKind.BALANCE:
            self.moving.withdraw(plan)
        for wanted in proposed.moves:
            self.moving.propose(plan, wanted)

    def _choose_policy(self, chosen: events.PolicyChosen) -> None:
        self.world.policy = placement_policy(chosen.name, chosen.options)
        self.world.counters.policy = ChosenPolicy(chosen.name, dict(chosen.options), chosen.configured)
        self.world.count()

    def check_invariants(self) -> None:
        """AssertionError where a rule of this module is broken."""
        world = self.world
        for user in world.users:
            assert user.broker not in user.stale, f"{user.name} is stale where it is placed"
            assert user.version <= world.counters.version, f"{user.name} has a version that nobody gave"
            assert user.broker is None or user.broker in world.brokers, f"{user.name} is at an unknown broker"
            assert set(user.stale) <= set(world.brokers.names()), f"{user.name} lingers at an unknown broker"
            homes = [name for name, residents in world.users.residents.items() if user.name in residents]
            assert homes == ([user.broker] if user.broker else []), f"{user.name} resides at {homes}"
            assert (user.name in world.users.homeless) == (user.broker is None and not user.is_removed)
        assert [user.name for user in world.users.after("")] == sorted(world.users.names())
        for name, users in world.users.lingering.items():
            assert all(name in world.users[user].stale for user in users)
        for move in world.moves:
            assert move.is_active == (world.moves.active.get(move.user) is move), f"{move.id} is not the active one"
            if move.is_active:
                mover = world.users.get(move.user)
                assert mover is not None, f"{move.id} has no user"
                assert not mover.is_removed, f"{move.id} moves a removed user"
                if move.state is not MoveState.PLANNED:
                    assert move.version > mover.version, f"{move.id} has an old version"
                    assert move.source == mover.broker, f"{move.id} is not from where its user is"
