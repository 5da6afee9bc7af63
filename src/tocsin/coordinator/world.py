"""Everything that the coordinator knows, and how it tells brokers what to do.

Nothing that waits for a broker is durable by itself: whatever a broker has to be told follows from the rows,
and is told again when the broker registers, in a new life of its own or of the coordinator's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from random import Random

import msgspec

from tocsin.coordinator.brokers import MEMBERS, Broker, BrokerState, Presence
from tocsin.coordinator.events import Effect, Tell
from tocsin.coordinator.liveness import AwakeClock, Signs
from tocsin.coordinator.moves import Move, Moves
from tocsin.coordinator.plans import Counters, Plan, PlanKind, Plans
from tocsin.coordinator.rows import Change, Rows
from tocsin.coordinator.rules import Rules
from tocsin.coordinator.telling import Did, Telling, Told
from tocsin.coordinator.users import User, Users
from tocsin.errors import Corrupt
from tocsin.policies.base import PlacementPolicy
from tocsin.protocol.coordination import Adopt, BrokerInfo, Instruction, Release, Send, Topology

COUNTERS = "counters"
_NUMBERS_OF_A_LIFE = 2**32


class World:
    def __init__(self, rules: Rules, policy: PlacementPolicy, rng: Random) -> None:
        self.rules, self.policy, self.rng = rules, policy, rng
        self.brokers: Rows[Broker] = Rows("broker", Broker)
        self.presence: dict[str, Presence] = {}
        self.users, self.moves, self.plans = Users(), Moves(), Plans()
        self._counters: Rows[Counters] = Rows(COUNTERS, Counters)
        self.counters = Counters()
        self.clock = AwakeClock(rules.longest_tick_s)
        self.now = 0.0
        self.effects: list[Effect] = []
        self.telling = Telling()
        self.tried_at: dict[str, float] = {}  # when a user's last move ended that was no drain's
        self._number = 0

    # --- rows ------------------------------------------------------------------------------------------

    def load(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Take what the store has, and begin a new life."""
        tables = {table.kind: table for table in self._tables()}
        for kind, key, body in sorted(rows):
            try:
                tables[kind].read(key, body)
            except (KeyError, msgspec.DecodeError, UnicodeDecodeError) as problem:
                raise Corrupt(f"the store's row of {kind} {key!r} is none of this program: {problem}") from None
        self.counters = self._counters.get(COUNTERS) or Counters()
        self.counters.life += 1
        self.count()
        self._number = self.counters.life * _NUMBERS_OF_A_LIFE
        for broker in self.brokers:
            self.presence[broker.name] = Presence(Signs(self.clock.now_s))
            if broker.state is BrokerState.SILENT:
                broker.state = BrokerState.LIVE

    def take_changes(self) -> list[Change]:
        """What the store does not have yet."""
        return [change for table in self._tables() for change in table.take()]

    def count(self) -> None:
        """The counters have changed."""
        self._counters.put(COUNTERS, self.counters)

    def _tables(self) -> tuple[Rows[Broker], Users, Moves, Plans, Rows[Counters]]:
        return self.brokers, self.users, self.moves, self.plans, self._counters

    # --- numbers ---------------------------------------------------------------------------------------

    def next_version(self) -> int:
        self.counters.version += 1
        self.count()
        return self.counters.version

    def new_plan(self, cause: str, kind: PlanKind = PlanKind.ASKED) -> Plan:
        self.counters.plans += 1
        self.count()
        plan = Plan(f"p{self.counters.plans:09d}", cause, self.now, kind)
        self.plans.put(plan.id, plan)
        return plan

    def kind_of(self, move: Move) -> PlanKind:
        plan = self.plans.get(move.plan)
        return plan.kind if plan else PlanKind.ASKED

    def new_move_id(self) -> str:
        self.counters.moves += 1
        self.count()
        return f"m{self.counters.moves:012d}"

    # --- telling ---------------------------------------------------------------------------------------

    def members(self) -> list[BrokerInfo]:
        """Who owns topics. Where all drain, those that were asked to and do not end: they serve whoever is there."""
        brokers = sorted(self.brokers, key=lambda b: b.name)
        staying = (b for b in brokers if b.state is BrokerState.DRAINING and self.presence[b.name].leaves_s is None)
        return [b.info for b in brokers if b.state in MEMBERS] or [b.info for b in staying]

    def leaving(self) -> list[BrokerInfo]:
        return [b.info for b in sorted(self.brokers, key=lambda b: b.name) if b.state is BrokerState.DRAINING]

    def can_take(self, broker: str) -> bool:
        found = self.brokers.get(broker)
        return found is not None and found.state is BrokerState.LIVE

    def is_online(self, user: str, broker: str | None) -> bool:
        return broker in self.presence and user in self.presence[broker].holdings

    def seen(self, name: str) -> None:
        """The user was there until now."""
        user = self.users.get(name)
        if user is not None:
            user.seen_at = self.now
            self.users.touch(name)

    def lose_sight(self, broker: str, still: Collection[str] = ()) -> None:
        """Who is online at ``broker`` is not known any more, save for ``still``; the others were seen until now.

        No row is written for it, of so many at once: whoever the store has counts as seen when the coordinator starts.
        """
        if broker in self.presence:
            holdings = self.presence[broker].holdings
            for name in holdings.keys() - set(still):
                if user := self.users.get(name):
                    user.seen_at = self.now
            holdings.clear()

    def adopt(self, user: User, broker: str, version: int) -> int:
        """The instruction's number, 0 where the broker hears nothing now."""
        wanted = list(user.subscriptions.values())
        return self._tell(broker, Did.ADOPT, user.name, version, lambda n: Adopt(n, user.name, version, wanted))

    def has_adopted(self, user: str, broker: str | None, version: int) -> bool:
        """Whether ``broker`` lives, was told everything of ``user``, and has said that it holds it."""
        if broker is None or not self._hears(broker):
            return False
        return not self.telling.awaits(Told(broker, Did.ADOPT, user, version))

    def send(self, move: Move) -> int:
        """Its ticket is added when it is handed over."""
        to, source = self.brokers[move.to].info, move.source or ""
        told = (source, Did.SEND, move.user, move.version)
        return self._tell(*told, lambda n: Send(n, move.user, move.version, to, ""))

    def release(self, user: User, broker: str) -> None:
        told = (broker, Did.RELEASE, user.name, user.version)
        self._tell(*told, lambda n: Release(n, user.name, user.version))

    def awaits_release(self, user: User, broker: str) -> bool:
        return self.telling.awaits(Told(broker, Did.RELEASE, user.name, user.version))

    def tell_topology(self, brokers: Iterable[str] | None = None) -> None:
        """To these, or to all who live."""
        members, leaving = self.members(), self.leaving()
        for name in self.brokers.names() if brokers is None else brokers:
            if self._hears(name):
                self._number += 1
                self.effects.append(Tell(name, Topology(self._number, members, leaving)))

    def retry(self, told: Told) -> None:
        self.telling.again(self.clock.now_s + self.rules.retry_s, told)

    def _tell(self, broker: str, did: Did, user: str, version: int, make: Callable[[int], Instruction]) -> int:
        if not self._hears(broker):
            return 0
        self._number += 1
        self.telling.add(self._number, Told(broker, did, user, version))
        self.effects.append(Tell(broker, make(self._number)))
        return self._number

    def _hears(self, broker: str) -> bool:
        found = self.brokers.get(broker)
        return found is not None and not found.is_ended and self.presence[broker].is_known
