"""A coordinator whose brokers are simulated and whose clock stands still: small worlds in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from tocsin.coordinator import events
from tocsin.coordinator.events import Detach, Effect, Event, Restart, Tell
from tocsin.coordinator.rows import Change
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.state import State
from tocsin.policies.registry import placement_policy
from tocsin.protocol.coordination import Holding, Instruction, Load, Outcome, Registration, Report, Topology
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import TopicTarget

Row = tuple[str, str, bytes]


class MemoryStore:
    """Rows in a dictionary; ``fails`` makes the next commits fail."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}
        self.fails = False

    def load(self) -> Sequence[Row]:
        return [(kind, key, body) for (kind, key), body in self.rows.items()]

    def save(self, changes: Iterable[Change]) -> None:
        if self.fails:
            raise OSError("the disk is full")
        for change in changes:
            if change.body is None:
                self.rows.pop((change.kind, change.key), None)
            else:
                self.rows[change.kind, change.key] = change.body

    def close(self) -> None:
        return


class NoCluster:
    """A data cluster that holds nothing; remembers whom it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def remove_some(self, broker: str) -> bool:
        self.asked.append(broker)
        return False

    async def close(self) -> None:
        return


def wanted(id: str, position: str | None = None) -> Wanted:
    return Wanted(id, TopicTarget(f"t{id}"), position)


class Story:
    """A state that is told things one by one, and what it said in answer."""

    def __init__(self, *brokers: str, policy: str = "round_robin", store: MemoryStore | None = None, **rules: object):
        self.rules, self.policy = Rules(**{"detach_after_s": 0.0, **rules}), policy  # type: ignore[arg-type]
        self.store, self.now = store or MemoryStore(), 1000.0
        self.begin()
        for name in brokers:
            self.register(name)

    def begin(self) -> None:
        """Start, or start again from what is durable."""
        self._told: list[Tell] = []
        self.state = State(self.rules, placement_policy(self.policy), Random(0))
        self.state.load(self.store.load(), self.now)
        self.store.save(self.state.world.take_changes())

    def tell(self, event: Event) -> list[Effect]:
        effects = self.state.handle(event, self.now)
        self._told += [one for one in effects if isinstance(one, Tell) and not isinstance(one.instruction, Topology)]
        self.store.save(self.state.world.take_changes())
        self.state.check_invariants()
        return effects

    def register(self, name: str, incarnation: str = "1", **more: object) -> list[Instruction]:
        registration = Registration(incarnation, f"http://{name}:1", **more)  # type: ignore[arg-type]
        effects = self.tell(events.BrokerRegistered(name, registration))
        assert Restart(name, incarnation) in effects
        return told(effects, name)

    def report(self, name: str, incarnation: str = "1", **more: object) -> list[Effect]:
        return self.tell(events.BrokerReported(name, Report(incarnation, Load(), **more)))  # type: ignore[arg-type]

    def done(self, name: str, instruction: Instruction, ok: bool = True, reason: str = "") -> list[Effect]:
        return self.report(name, outcomes=[Outcome(instruction.number, ok, reason)])

    def obey(self) -> None:
        """Every broker has done whatever it was told, and what it was told then."""
        while self._told:
            one = self._told.pop(0)
            outcome = Outcome(one.instruction.number, True)
            self.report(one.broker, self.state.world.brokers[one.broker].incarnation, outcomes=[outcome])

    def online(self, name: str, *users: str) -> list[Effect]:
        return self.report(name, holdings=[Holding(user, ["s"]) for user in users])

    def pass_time(self, seconds: float, *reporting: str, step_s: float = 0.5) -> list[Effect]:
        """Tick, while these brokers report."""
        found = []
        for _ in range(round(seconds / step_s)):
            self.now += step_s
            for name in reporting:
                found += self.report(name, self.state.world.brokers[name].incarnation)
            found += self.tell(events.Ticked(step_s))
        return found

    def place(self, user: str) -> str | None:
        self.tell(events.PlacementAsked(user))
        return self.where(user)

    def keep(self, user: str, id: str, by: str | None = None) -> list[Effect]:
        return self.tell(events.SubscriptionKept(user, wanted(id), by))

    def where(self, user: str) -> str | None:
        return self.state.world.users[user].broker

    def version(self, user: str) -> int:
        return self.state.world.users[user].version

    def plan(self, user: str, to: str) -> list[Effect]:
        return self.tell(events.PlanProposed([events.WantedMove(user, to, "balance")], "a test"))

    @property
    def move(self) -> tuple[str, str]:
        """How the last move stands, and why."""
        last = list(self.state.world.moves)[-1]
        return last.state, last.outcome


def told(effects: Iterable[Effect], broker: str) -> list[Instruction]:
    return [effect.instruction for effect in effects if isinstance(effect, Tell) and effect.broker == broker]


def detached(effects: Iterable[Effect]) -> list[str]:
    return [effect.broker for effect in effects if isinstance(effect, Detach)]
