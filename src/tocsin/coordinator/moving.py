"""Carrying out moves: make before break, at a bounded rate, each to a known end (see ``moves``)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tocsin.coordinator.brokers import BrokerState
from tocsin.coordinator.events import WantedMove
from tocsin.coordinator.moves import Move, MoveState
from tocsin.coordinator.placing import Placing
from tocsin.coordinator.plans import PlanKind
from tocsin.coordinator.telling import Did, Told
from tocsin.coordinator.users import User
from tocsin.coordinator.world import World


@dataclass(slots=True)
class Course:
    """How far a move that has begun is, in awake seconds. Not durable: brokers that are told again tell it again."""

    deadline_s: float
    adoption: int = 0  # the one whose outcome counts
    problem: str = ""  # why the destination could not adopt again
    arrived_s: float | None = None  # when its first session was at the destination
    is_source_empty: bool = False


class Moving:
    def __init__(self, world: World, placing: Placing) -> None:
        self._world, self._placing = world, placing
        self._planned: deque[str] = deque()
        self._drained: deque[str] = deque()  # planned by drains, which cannot wait for a long plan
        self._courses: dict[str, Course] = {}  # of moves that have begun, by user
        self._tokens, self._filled_s = max(1.0, world.rules.moves_per_s), 0.0

    @property
    def free(self) -> int:
        """How many more moves of drains may be under way or planned; what others planned takes no place from them."""
        active = self._world.moves.active
        started = sum(self._world.kind_of(active[user]) is PlanKind.DRAIN for user in self._courses)
        return self._places - started - len(self._drained)

    @property
    def haste(self) -> float:
        """How many times faster than usual moves begin, for leaving brokers to be empty before they end.

        Half of the time that is left is meant to suffice; what is late makes the rest faster.
        """
        world, rules = self._world, self._world.rules
        leaving = [world.presence[b.name] for b in world.brokers if b.state is BrokerState.DRAINING]
        wanted_per_s = sum(
            2 * one.online / max(1.0, one.leaves_s - world.clock.now_s) for one in leaving if one.leaves_s is not None
        )
        return max(1.0, min(wanted_per_s, rules.drain_moves_per_s) / rules.moves_per_s)

    @property
    def _places(self) -> int:
        return int(self._world.rules.moves_in_flight * self.haste)

    def resume(self) -> None:
        """Go on with what the store has: each step gets its whole time again."""
        for move in self._world.moves.active.values():
            if move.is_started:
                self._courses[move.user] = Course(self._deadline_s(move))
            else:
                self._queue(move).append(move.id)
        self._planned, self._drained = deque(sorted(self._planned)), deque(sorted(self._drained))
        for move in self._world.moves:
            if move.ended_at is not None and move.version:
                self._tried(move, move.state, move.ended_at)

    # --- wanting moves ---------------------------------------------------------------------------------

    def propose(self, plan: str, wanted: WantedMove) -> None:
        """Record a move; an older one of the same user gives way."""
        world = self._world
        user = world.users.get(wanted.user)
        source = user.broker if user else None
        move = Move(world.new_move_id(), plan, wanted.user, source, wanted.to, wanted.reason, world.now)
        move.expected = wanted.expected
        problem = self._problem(user, wanted.to) or self._outdated(wanted, source)
        if problem:
            world.moves.put(move.id, move)
            world.moves.end(move, MoveState.REFUSED, problem, world.now)
            return
        self.end_of(wanted.user, MoveState.SUPERSEDED, f"plan {plan} moves the user to {wanted.to}")
        world.moves.add(move)
        self._queue(move).append(move.id)

    def withdraw(self, plan: str) -> None:
        """``plan`` balances anew: what earlier ones wanted and did not begin is not to be."""
        world = self._world
        for move in [m for m in world.moves.active.values() if not m.is_started]:
            if world.kind_of(move) is PlanKind.BALANCE:
                self.end(move, MoveState.SUPERSEDED, f"plan {plan} takes the place of {move.plan}")
        active = {move.id for move in world.moves.active.values()}
        self._planned = deque(key for key in self._planned if key in active)

    def pump(self) -> None:
        """Start planned moves, those of drains first, as many as the limits allow."""
        world, places = self._world, self._places
        per_s = world.rules.moves_per_s * self.haste
        gained = (world.clock.now_s - self._filled_s) * per_s
        self._tokens = min(max(1.0, per_s), self._tokens + gained)
        self._filled_s = world.clock.now_s
        while (queue := self._drained or self._planned) and len(self._courses) < places and self._tokens >= 1:
            move = world.moves.get(queue.popleft())
            if move is not None and move.state is MoveState.PLANNED:
                self._tokens -= 1
                self._start(move)

    def _queue(self, move: Move) -> deque[str]:
        return self._drained if self._world.kind_of(move) is PlanKind.DRAIN else self._planned

    # --- what happens to them --------------------------------------------------------------------------

    def adopted(self, number: int, told: Told, is_ok: bool, reason: str) -> bool:
        """Whether the outcome of that adoption was a move's."""
        move = self._of(told)
        if move is None:
            return False
        if self._courses[move.user].adoption == number:
            if move.state is MoveState.SENDING:
                self._adopted_again(move, told, is_ok, reason)
            elif is_ok:
                self._send(move)
            else:
                self.end(move, MoveState.REFUSED, f"{move.to} could not adopt the user: {reason}")
        return True

    def _adopted_again(self, move: Move, told: Told, is_ok: bool, reason: str) -> None:
        """Sessions are on their way already: the move waits for a destination that failed, and the source holds on."""
        self._courses[move.user].problem = reason
        if is_ok:
            self._settle(move)
        else:
            self._world.retry(told)

    def adopt_again(self, told: Told) -> bool:
        """Whether what the destination failed to do is still wanted of it by a move; then it is told again."""
        move = self._of(told)
        if move is not None:
            self._adopt(move, self._world.users[move.user])
        return move is not None

    def sent(self, told: Told, is_ok: bool, reason: str) -> None:
        """The source says that nobody is left, or that somebody will not go."""
        move = self._of(told)
        if move is None or move.state is not MoveState.SENDING:
            return
        if is_ok:
            self._courses[move.user].is_source_empty = True
            self._settle(move)
        else:
            self.end(move, MoveState.REFUSED, f"{move.source} could not send the user: {reason}")

    def arrived(self, broker: str, user: str, version: int) -> None:
        """A session is at the destination; the user's others have some time to follow it."""
        move = self._world.moves.active.get(user)
        if move is not None and move.is_started and (move.to, move.version) == (broker, version):
            course = self._courses[user]
            if course.arrived_s is None:
                course.arrived_s = self._world.clock.now_s
            self._settle(move)

    def renew(self, user: User, by: str | None) -> None:
        """The user's subscriptions have grown: the destination hears of it, unless it said so itself.

        One that has yet to let go of the user loses what it said with that, and adopts afterwards.
        """
        move = self._world.moves.active.get(user.name)
        if move is not None and move.is_started and (by != move.to or move.to in user.stale):
            self._adopt(move, user)

    def expire(self) -> None:
        """End the waiting for whoever takes too long."""
        for user, course in list(self._courses.items()):
            move = self._world.moves.active[user]
            self._settle(move)
            if move.is_active and course.deadline_s <= self._world.clock.now_s:
                self.end(move, MoveState.TIMED_OUT, f"waited too long for {self._waited_for(move)}")

    def _waited_for(self, move: Move) -> str:
        if move.state is MoveState.SENDING and self._is_held(move):
            return "the user to arrive"
        problem = self._courses[move.user].problem
        return f"{move.to} to adopt the user{problem and f': {problem}'}"

    def end_of(self, user: str, state: MoveState, outcome: str) -> None:
        """End the user's move, if one is active; it stays where it is."""
        move = self._world.moves.active.get(user)
        if move is not None:
            self.end(move, state, outcome)

    def end(self, move: Move, state: MoveState, outcome: str) -> None:
        was_started = move.is_started
        self._close(move, state, outcome)
        user = self._world.users.get(move.user)
        if was_started and user is not None:
            self._placing.restamp(user)
            self._placing.let_go(user, move.to)

    def source_died(self, user: User) -> bool:
        """Whether the user's move had begun, so that it is simply placed at the destination."""
        move = self._world.moves.active.get(user.name)
        if move is None:
            return False
        if not (move.is_started and self._world.can_take(move.to)):
            self.end(move, MoveState.SUPERSEDED, "the source died")
            return False
        self._finish(move, "the source died; the destination had the user already")
        return True

    def destination_lost(self, broker: str, outcome: str) -> None:
        for move in [m for m in self._world.moves.active.values() if m.to == broker]:
            self.end(move, MoveState.REFUSED, outcome)

    def returned(self, broker: str) -> None:
        """Tell a broker that registered what its moves want of it."""
        for move in list(self._world.moves.active.values()):
            user = self._world.users[move.user]
            if move.is_started and move.to == broker:
                self._adopt(move, user)
            if move.state is MoveState.SENDING and move.source == broker:
                self._world.send(move)

    # --- steps -----------------------------------------------------------------------------------------

    def _problem(self, user: User | None, to: str) -> str:
        if user is None or user.is_removed:
            return "there is no such user"
        if user.broker is None:
            return "the user is placed nowhere"
        if user.broker == to:
            return f"the user is at {to} already"
        if not self._world.can_take(to):
            found = self._world.brokers.get(to)
            return f"{to} is {found.state}" if found else f"there is no broker {to!r}"
        return ""

    def _outdated(self, wanted: WantedMove, source: str | None) -> str:
        if wanted.source is None:
            return ""
        if source != wanted.source:
            return f"the user is not at {wanted.source} any more"
        return "the user is on another move" if wanted.user in self._world.moves.active else ""

    def _start(self, move: Move) -> None:
        world, user = self._world, self._world.users.get(move.user)
        problem = self._problem(user, move.to)
        if problem or user is None:
            self.end(move, MoveState.REFUSED, problem)
            return
        world.moves.advance(move, MoveState.ADOPTING)
        move.source, move.version = user.broker, world.next_version()
        self._courses[move.user] = Course(self._deadline_s(move))
        self._adopt(move, user)

    def _adopt(self, move: Move, user: User) -> None:
        self._courses[move.user].adoption = self._world.adopt(user, move.to, move.version)

    def _send(self, move: Move) -> None:
        self._world.moves.advance(move, MoveState.SENDING)
        self._courses[move.user].deadline_s = self._deadline_s(move)
        self._world.send(move)

    def _settle(self, move: Move) -> None:
        """Finish once nobody is left at the source, or need be waited for, and the destination holds everything."""
        course = self._courses[move.user]
        if move.state is not MoveState.SENDING or not self._is_held(move):
            return
        if course.is_source_empty:
            self._finish(move, "nobody is left at the source" if course.arrived_s is None else "arrived")
        elif course.arrived_s is not None:
            waits_until_s = min(course.arrived_s + self._world.rules.follow_timeout_s, course.deadline_s)
            if self._world.clock.now_s >= waits_until_s:
                self._finish(move, "arrived, without sessions that did not follow")

    def _is_held(self, move: Move) -> bool:
        """Whether the destination has said that it adopted the user, after all that it was told."""
        return self._world.has_adopted(move.user, move.to, move.version)

    def _finish(self, move: Move, outcome: str) -> None:
        user = self._world.users[move.user]
        self._close(move, MoveState.DONE, outcome)
        self._placing.put(user, move.to, move.cause, move.version)

    def _close(self, move: Move, state: MoveState, outcome: str) -> None:
        if move.is_started:
            self._tried(move, state, self._world.now)
            del self._courses[move.user]
        self._world.moves.end(move, state, outcome, self._world.now)

    def _tried(self, move: Move, state: MoveState, at: float) -> None:
        """The user's rest begins, in which nobody balances it; a drain's move, or one that gave way, is no reason."""
        if state is not MoveState.SUPERSEDED and self._world.kind_of(move) is not PlanKind.DRAIN:
            self._world.tried_at[move.user] = at

    def _deadline_s(self, move: Move) -> float:
        rules = self._world.rules
        wait_s = rules.adopt_timeout_s if move.state is MoveState.ADOPTING else rules.move_timeout_s
        return self._world.clock.now_s + wait_s

    def _of(self, told: Told) -> Move | None:
        """The active move that this instruction was for."""
        move = self._world.moves.active.get(told.user)
        if move is None or move.version != told.version:
            return None
        return move if told.broker == (move.to if told.did is Did.ADOPT else move.source) else None
