"""A move of one user from one broker to another, and the states that it goes through.

::

    planned ──► adopting ──► sending ──► done
       │            │            │
       └────────────┴────────────┴─────► refused, timed out, superseded

``adopting``: the destination attaches the user's subscriptions. ``sending``: the source has told the user's
sessions to go. ``done``: nobody is left at the source, or a session has arrived and the others did not follow it in
time. However else it ends, the user stays where it was, under a new version, and the destination lets go under that;
whoever still arrives there is let in, and sent back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from tocsin.coordinator.rows import Rows


class MoveState(StrEnum):
    PLANNED = "planned"
    ADOPTING = "adopting"
    SENDING = "sending"
    DONE = "done"
    REFUSED = "refused"
    TIMED_OUT = "timed out"
    SUPERSEDED = "superseded"


_FAILED = frozenset({MoveState.REFUSED, MoveState.TIMED_OUT, MoveState.SUPERSEDED})
LEGAL: Mapping[MoveState, frozenset[MoveState]] = {
    MoveState.PLANNED: frozenset({MoveState.ADOPTING}) | _FAILED,
    MoveState.ADOPTING: frozenset({MoveState.SENDING, MoveState.DONE}) | _FAILED,  # done: its source died
    MoveState.SENDING: frozenset({MoveState.DONE}) | _FAILED,
    MoveState.DONE: frozenset(),
    MoveState.REFUSED: frozenset(),
    MoveState.TIMED_OUT: frozenset(),
    MoveState.SUPERSEDED: frozenset(),
}
STARTED = (MoveState.ADOPTING, MoveState.SENDING)


class Expected(msgspec.Struct, frozen=True):
    """What balancing foresaw, once the moves before it in its plan have been made: bytes a second of both brokers, and
    the highest level and cov of all brokers after it."""

    source_before: float
    source_after: float
    target_before: float
    target_after: float
    maximum: float
    cov: float


class Move(msgspec.Struct, omit_defaults=True):
    """Durable. ``cause`` is why it was wanted, ``outcome`` why it ended as it did; ``version`` is 0 until it starts."""

    id: str
    plan: str
    user: str
    source: str | None
    to: str
    cause: str
    created_at: float
    state: MoveState = MoveState.PLANNED
    version: int = 0
    outcome: str = ""
    ended_at: float | None = None
    expected: Expected | None = None

    @property
    def is_active(self) -> bool:
        return bool(LEGAL[self.state])

    @property
    def is_started(self) -> bool:
        return self.state in STARTED

    def become(self, state: MoveState) -> None:
        if state not in LEGAL[self.state]:
            raise RuntimeError(f"move {self.id}: {self.state} does not become {state}")
        self.state = state


class Moves(Rows[Move]):
    """All moves that are kept, oldest first, and the one of each user that has not ended."""

    def __init__(self) -> None:
        super().__init__("move", Move)
        self.active: dict[str, Move] = {}
        self.arriving: Counter[str] = Counter()  # how many are to come, by broker
        self.ended: Counter[str] = Counter()  # in this run, by how they ended

    def read(self, key: str, body: bytes) -> Move:
        move = super().read(key, body)
        self._index(move)
        return move

    def add(self, move: Move) -> None:
        self.put(move.id, move)
        self._index(move)

    def advance(self, move: Move, state: MoveState) -> None:
        move.become(state)
        self.touch(move.id)

    def end(self, move: Move, state: MoveState, outcome: str, now: float) -> None:
        self.advance(move, state)
        move.outcome, move.ended_at = outcome, now
        self.ended[state] += 1
        self.arriving[move.to] -= 1
        if self.active.get(move.user) is move:
            del self.active[move.user]

    def _index(self, move: Move) -> None:
        if move.is_active:
            self.active[move.user] = move
            self.arriving[move.to] += 1

    def trim(self, kept: int) -> None:
        """Forget the oldest that have ended, beyond ``kept`` moves."""
        surplus = len(self) - kept
        if surplus > 0:
            ended = [move.id for move in self if not move.is_active]
            for key in ended[:surplus]:
                self.drop(key)
