"""The coordinator's state under any sequence of events, with brokers that obey at least once.

Everything may be lost: instructions, outcomes, answers, brokers, the coordinator between any two events. The
rules hold after every step; nobody is told to let go of a user, and nothing that a dead broker left is removed, before
the user's broker holds all of its subscriptions; a source lets go when the user's sessions have left or had the time
to; and once everyone is well again, every move ends, and every user is held, with its subscriptions and nothing else,
by the one live broker that it is placed at, and by no other.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.sim_brokers import SimBroker
from tocsin.coordinator import events
from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.events import Detach, Event, Restart, Tell, WantedMove
from tocsin.coordinator.moves import Move, MoveState
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.queues import Queue
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.state import State
from tocsin.errors import TocsinError
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import Instruction, Kept, Release, Report, Send
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import TopicTarget

RULES = Rules(moves_in_flight=2, moves_per_s=2.0, kept_moves=20, kept_plans=5, max_subscriptions=4, detach_after_s=1.0)
BROKERS, USERS, IDS = ("a", "b", "c"), ("ann", "bob", "eve", "joe"), ("1", "2", "3")

brokers, users, ids = st.sampled_from(BROKERS), st.sampled_from(USERS), st.sampled_from(IDS)
some = st.sets(brokers)
ways = st.sampled_from(["told", "noted", "asked"])
seldom = st.integers(0, 3).map(lambda n: n == 3)


class Coordination(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.sims = {name: SimBroker(name) for name in BROKERS}
        self.store: dict[tuple[str, str], bytes] = {}
        self.queues: dict[str, Queue] = {}
        self.versions: dict[str, int] = {}
        self.ended: set[str] = set()  # moves
        self.restarted: set[str] = set()  # brokers
        self.removed: set[str] = set()  # users, who may have come back: what they had before is nobody's
        self.sends: dict[int, int] = {}  # version of what was told under a number
        self.sent_at: dict[int, float] = {}  # by version, as the two that follow
        self.arrived_at: dict[int, float] = {}
        self.emptied: set[int] = set()
        self.now = 1000.0
        self.state = self.begin()

    @initialize()
    def some_brokers(self) -> None:
        for name in BROKERS:
            self.sims[name].start()
            self.send(self.sims[name].registration())
        for user in USERS:
            self.log_in(user)
            self.subscribe(user, "1", "told")

    # --- the coordinator -------------------------------------------------------------------------------

    def begin(self) -> State:
        state = State(RULES, placement_policy("round_robin"), Random(0))
        state.load([(kind, key, body) for (kind, key), body in self.store.items()], self.now)
        self.queues.clear()
        return state

    def send(self, event: Event, *, dies: bool = False) -> bool:
        """Handle, make durable, carry out; or die before anything is durable."""
        try:
            effects = self.state.handle(event, self.now)
        except TocsinError:
            return False
        if dies:
            self.state = self.begin()
            return False
        self.commit()
        self.removed |= {user.name for user in self.state.world.users if user.is_removed}
        for effect in effects:
            if isinstance(effect, Restart):
                self.queues[effect.broker] = Queue(effect.incarnation, 10**6)
            elif isinstance(effect, Tell):
                self.queues[effect.broker].put(effect.instruction)
                self.note_send(effect.instruction)
                self.nobody_lets_go_too_early(effect.instruction)
            elif isinstance(effect, Detach):
                self.nothing_is_removed_too_early(effect.broker)
        for move in self.state.world.moves:
            if move.ended_at is not None and move.id not in self.ended:
                self.ended.add(move.id)
                self.nobody_is_cut_off(move)
        return True

    def note_send(self, instruction: Instruction) -> None:
        if isinstance(instruction, Send):
            self.sends[instruction.number] = instruction.version
            self.sent_at.setdefault(instruction.version, self.now)

    def note_report(self, name: str, report: Report) -> None:
        """Whom the destination of its move let in unasked has arrived, too."""
        moves = (self.state.world.moves.active.get(user) for user in report.admitted)
        admitted = [move.version for move in moves if move and move.to == name]
        for version in (*admitted, *(arrival.version for arrival in report.arrivals)):
            self.arrived_at.setdefault(version, self.now)
        self.emptied |= {self.sends[one.number] for one in report.outcomes if one.ok and one.number in self.sends}

    def nobody_lets_go_too_early(self, instruction: Instruction) -> None:
        if isinstance(instruction, Release):
            self.is_held(instruction.user)

    def nothing_is_removed_too_early(self, broker: str) -> None:
        """What it held others hold; or did, and left it at the data cluster when they ended or began anew."""
        world = self.state.world
        left = {b.name for b in world.brokers if b.is_ended and b.is_attached} | self.restarted
        for user in world.users.lingering[broker] - self.removed:
            others = {world.users[user].broker, *world.users[user].stale} - {broker}
            if left.isdisjoint(others):
                self.is_held(user, self.sims[broker].held.get(user, set()))

    def is_held(self, name: str, ids: Collection[str] = IDS) -> None:
        """The user's broker holds all of these, unless it has died unknown to us, or the user is gone."""
        user = self.state.world.users.get(name)
        if user is None or user.is_removed:
            return
        assert user.broker is not None, f"{name} is placed nowhere"
        sim, broker = self.sims[user.broker], self.state.world.brokers[user.broker]
        assert not broker.is_ended, f"{name} is placed at {user.broker}, which has ended"
        if sim.is_running and sim.incarnation == broker.incarnation:
            assert name in sim.held, f"{user.broker} does not hold {name} yet"
            told = {id for id in user.subscriptions.keys() & set(ids) if (name, id) not in sim.noted}
            assert told <= sim.held[name], f"{user.broker} lacks some of {name}"

    def nobody_is_cut_off(self, move: Move) -> None:
        """A source is told to let go when all have left it; or some have arrived, and the others had their time."""
        if move.state is not MoveState.DONE or "died" in move.outcome or move.version in self.emptied:
            return
        followed_s = self.now - self.arrived_at[move.version]
        sent_s = self.now - self.sent_at.get(move.version, self.now)  # a source that is not heard was not told
        assert followed_s >= RULES.follow_timeout_s or sent_s >= RULES.move_timeout_s

    def commit(self) -> None:
        for change in self.state.world.take_changes():
            if change.body is None:
                self.store.pop((change.kind, change.key), None)
            else:
                self.store[change.kind, change.key] = change.body

    @rule(elapsed=st.sampled_from([0.25, 3.0, 60.0, 10 * 86400.0]), times=st.integers(1, 12))
    def nobody_is_heard(self, elapsed: float, times: int) -> None:
        for _ in range(times):
            self.now += elapsed
            self.send(events.Ticked(elapsed))

    @rule()
    def restart(self) -> None:
        self.state = self.begin()
        self.commit()

    # --- brokers ---------------------------------------------------------------------------------------

    def some_time(self, reporting: set[str], instructed: set[str], following: set[str], fails: bool = False) -> None:
        self.now += 1.0
        self.send(events.Ticked(1.0))
        for name in sorted(instructed):
            self.instruct(name, 50, fails=fails)
        for name in sorted(following):
            self.follow(name)
        for name in sorted(reporting):
            self.report(name)

    @rule(reporting=some, instructed=some, following=some)
    def time_passes(self, reporting: set[str], instructed: set[str], following: set[str]) -> None:
        self.some_time(reporting, instructed, following)

    @rule(seconds=st.integers(1, 12), silent=some, idle=some)
    def work_goes_on(self, seconds: int, silent: set[str], idle: set[str]) -> None:
        for _ in range(seconds):
            self.some_time(set(BROKERS) - silent, set(BROKERS) - idle, set(BROKERS) - idle)

    @rule(failing=brokers)
    def work_fails(self, failing: str) -> None:
        self.some_time(set(BROKERS), {failing}, set(), fails=True)

    @rule(name=brokers)
    def start(self, name: str) -> None:
        self.restarted.add(name)
        self.sims[name].start()
        self.send(self.sims[name].registration())

    @rule(name=brokers, really=seldom)
    def kill(self, name: str, really: bool) -> None:
        if really:
            self.sims[name].kill()

    @rule(name=brokers)
    def refuse(self, name: str) -> None:
        if not self.sims[name].is_running:
            self.send(events.BrokerRefused(name))

    @rule(name=brokers, is_lost=st.booleans(), dies=st.booleans())
    def report(self, name: str, is_lost: bool = False, dies: bool = False) -> None:
        sim = self.sims[name]
        if not sim.is_running:
            return
        event = sim.report()
        self.note_report(name, event.report)
        is_known = self.send(event, dies=dies) and self.state.knows(name, sim.incarnation)
        if not is_known:
            self.send(sim.registration())
        elif not is_lost:
            sim.answered(event.report)

    @rule(name=brokers, count=st.integers(1, 5), fails=st.booleans(), again=st.booleans())
    def instruct(self, name: str, count: int, fails: bool = False, again: bool = False) -> None:
        sim, queue = self.sims[name], self.queues.get(name)
        if not sim.is_running or queue is None or queue.incarnation != sim.incarnation:
            return
        for instruction in queue.after(0 if again else sim.after, count):
            sim.obey(instruction, self.kept_of, fails=fails)

    def kept_of(self, user: str) -> set[str]:
        known = self.state.world.users.get(user)
        return set(known.subscriptions) if known else set()

    @rule(name=brokers, really=seldom)
    def drain(self, name: str, really: bool) -> None:
        if really:
            self.sims[name].is_draining = True

    @rule(name=brokers, really=seldom)
    def remove_broker(self, name: str, really: bool) -> None:
        if really:
            self.send(events.BrokerRemoved(name))

    # --- people ----------------------------------------------------------------------------------------

    @rule(user=users, dies=st.booleans())
    def log_in(self, user: str, dies: bool = False) -> None:
        if self.send(events.PlacementAsked(user), dies=dies):
            broker = self.state.world.users[user].broker
            if broker is not None and not self.sims[broker].login(user):
                self.instruct(broker, 50)
                self.sims[broker].login(user)

    @rule(name=brokers, user=users)
    def let_in_unasked(self, name: str, user: str) -> None:
        sim = self.sims[name]
        if sim.is_running:
            sim.held.setdefault(user, set())
            sim.online.add(user)
            sim.admitted.append(user)

    @rule(user=users)
    def disconnect(self, user: str) -> None:
        for sim in self.sims.values():
            sim.leave(user)

    @rule(user=users, id=ids, how=ways)
    def subscribe(self, user: str, id: str, how: str) -> None:
        """At a broker, which tells it or notes it for later; or at the coordinator itself."""
        wanted, at = Wanted(id, TopicTarget(f"t{id}")), self.broker_of(user) if how != "asked" else None
        if at is None:
            self.send(events.SubscriptionKept(user, wanted))
            return
        at.held[user].add(id)
        if how == "noted" or (user, id) in at.noted:
            at.noted[user, id] = Kept(user, id, wanted)
        else:
            self.send(events.SubscriptionKept(user, wanted, at.name))

    @rule(user=users, id=ids, how=ways)
    def unsubscribe(self, user: str, id: str, how: str) -> None:
        at = self.broker_of(user) if how != "asked" else None
        if at is None:
            self.send(events.SubscriptionEnded(user, id))
            return
        at.held[user].discard(id)
        if how == "noted" or (user, id) in at.noted:
            at.noted[user, id] = Kept(user, id)
        else:
            self.send(events.SubscriptionEnded(user, id, at.name))

    def broker_of(self, user: str) -> SimBroker | None:
        return next((sim for sim in self.sims.values() if user in sim.online), None)

    @rule(user=users, really=seldom)
    def remove_user(self, user: str, really: bool) -> None:
        if really:
            self.send(events.UserRemoved(user))

    @rule(name=brokers, confirms=st.booleans(), stays=st.booleans())
    def follow(self, name: str, confirms: bool = True, stays: bool = False) -> None:
        sim = self.sims[name]
        for user in list(sim.sends):
            if user in sim.online:
                sim.follow(user, self.sims[sim.sends[user].to.name], confirms=confirms, stays=stays)

    # --- plans -----------------------------------------------------------------------------------------

    @rule(wanted=st.lists(st.tuples(users, brokers), min_size=1, max_size=4), dies=st.booleans())
    def plan(self, wanted: list[tuple[str, str]], dies: bool) -> None:
        moves = [WantedMove(user, to, "a test") for user, to in wanted]
        self.send(events.PlanProposed(moves, "a test"), dies=dies)

    @rule(wanted=st.lists(st.tuples(users, brokers, brokers), max_size=4), dies=st.booleans())
    def balance(self, wanted: list[tuple[str, str, str]], dies: bool) -> None:
        """Of an earlier plan, what has not begun is gone; who is on another move is left alone."""
        moves = [WantedMove(user, to, "a test", source) for user, source, to in wanted]
        if self.send(events.PlanProposed(moves, "balance", PlanKind.BALANCE), dies=dies):
            active = self.state.world.moves.active.values()
            planned = [m for m in active if not m.is_started and self.state.world.kind_of(m) is PlanKind.BALANCE]
            assert {move.plan for move in planned} <= {self.state.world.plans.names()[-1]}

    # --- laws ------------------------------------------------------------------------------------------

    @invariant()
    def rules_hold(self) -> None:
        self.state.check_invariants()

    @invariant()
    def versions_only_grow(self) -> None:
        for user in self.state.world.users:
            if user.broker is not None:
                assert user.version >= self.versions.get(user.name, 0)
                self.versions[user.name] = user.version

    @invariant()
    def the_rows_are_the_state(self) -> None:
        """Another run of the coordinator would begin with just this."""
        other = State(RULES, placement_policy("round_robin"), Random(0))
        other.load([(kind, key, body) for (kind, key), body in self.store.items()], 0.0)
        other.check_invariants()
        here, there = self.state.world, other.world
        assert {u.name: (u.broker, u.version, u.stale) for u in here.users} == {
            u.name: (u.broker, u.version, u.stale) for u in there.users
        }
        assert set(here.moves.active) == set(there.moves.active)

    def teardown(self) -> None:
        """Everyone is well again, and everything comes to its end."""
        for sim in self.sims.values():
            if not sim.is_running or sim.is_draining:
                self.start(sim.name)
        for _ in range(60):
            self.now += 1.0
            self.send(events.Ticked(1.0))
            for name in BROKERS:
                self.report(name)
                self.instruct(name, 1000)
                self.follow(name)
        self.rules_hold()
        self.everyone_is_where_it_belongs()

    def everyone_is_where_it_belongs(self) -> None:
        world = self.state.world
        assert {b.state for b in world.brokers} == {BrokerState.LIVE}
        assert not world.moves.active
        assert all(move.ended_at is not None and move.outcome for move in world.moves)
        for user in world.users:
            assert user.broker is not None, f"{user.name} is nowhere, removed: {user.is_removed}"
            assert set(user.subscriptions) == self.sims[user.broker].held[user.name]
            assert not user.stale
        for sim in self.sims.values():
            assert sim.online <= set(sim.held)
            assert set(sim.held) == world.users.residents[sim.name], sim.name


Coordination.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestCoordination = Coordination.TestCase

# Hypothesis finds short stories; long ones, in which much goes on at once, are walked at random.

WEIGHTS = {
    "work_goes_on": 8, "time_passes": 8, "plan": 6, "follow": 3, "log_in": 4, "subscribe": 3, "instruct": 3,
    "report": 3, "unsubscribe": 3, "disconnect": 2, "work_fails": 2, "start": 1, "kill": 2, "refuse": 2, "drain": 1,
    "restart": 2, "let_in_unasked": 1, "remove_user": 1, "remove_broker": 1, "nobody_is_heard": 1,
}  # fmt: skip


def arguments(action: str, rng: Random) -> dict[str, Any]:
    """What hypothesis would draw for a rule, drawn from ``rng``."""
    subset = [name for name in BROKERS if rng.random() < 0.3]
    drawn = {
        "name": rng.choice(BROKERS), "failing": rng.choice(BROKERS), "user": rng.choice(USERS), "id": rng.choice(IDS),
        "count": rng.randint(1, 5), "seconds": rng.randint(1, 12), "times": rng.randint(1, 12),
        "elapsed": rng.choice([0.25, 3.0, 60.0]), "silent": set(subset), "idle": set(subset[:1]),
        "reporting": set(BROKERS) - set(subset), "instructed": set(BROKERS) - set(subset[:1]), "following": set(subset),
        "wanted": [(rng.choice(USERS), rng.choice(BROKERS)) for _ in range(rng.randint(1, 4))], "really": True,
        "dies": rng.random() < 0.1, "fails": rng.random() < 0.1, "again": rng.random() < 0.3,
        "is_lost": rng.random() < 0.3, "how": rng.choice(["told", "noted", "asked"]), "confirms": rng.random() < 0.7,
        "stays": rng.random() < 0.3,
    }  # fmt: skip
    wanted = inspect.signature(getattr(Coordination, action)).parameters
    return {name: value for name, value in drawn.items() if name in wanted}


@pytest.mark.parametrize("block", range(4))
def test_long_stories_end_well(block: int):
    for seed in range(20 * block, 20 * block + 20):
        rng, machine = Random(seed), Coordination()
        machine.some_brokers()
        for action in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=80):
            getattr(machine, action)(**arguments(action, rng))
            machine.rules_hold()
            machine.versions_only_grow()
        machine.the_rows_are_the_state()
        machine.teardown()
