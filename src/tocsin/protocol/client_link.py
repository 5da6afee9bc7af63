"""One connection of a client's session, from its opening to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from weakref import WeakSet

from tocsin.config import Client
from tocsin.protocol.holdings import Held
from tocsin.protocol.messages import Failed


class Phase(Enum):
    OPENING = "opening"  # the connection is being made
    LOGGING_IN = "logging in"  # login was sent
    CONFIRMING = "confirming"  # a move's destination has welcomed us
    READY = "ready"  # serves the session
    LEAVING = "leaving"  # another one does; waits for its last answers


@dataclass(slots=True)
class Asked:
    """A request that has no answer yet.

    ``key`` is the application's; of a login or a subscribe what it ``Named``, by id; of an unsubscribe its ``Leaving``.
    """

    kind: str
    key: Any = None


@dataclass(frozen=True, slots=True)
class Named:
    """A subscription, and where it stood when a link was told of it: the broker's answer says what follows that."""

    held: Held
    position: str | None

    @classmethod
    def now(cls, held: Held) -> Named:
        return cls(held, held.inbox.position)

    @property
    def counts(self) -> bool:
        """Whether the answer is about where the subscription stands, or stood: then nothing lies between."""
        mine = self.held.inbox.position
        return mine is None or (self.position is not None and self.position <= mine)


@dataclass(slots=True, eq=False)
class Leaving:
    """A subscription that the application ends.

    ``keys`` are the application's, more than one where it ended a later one of that id as well. ``refused_at`` is since
    when brokers cannot end it, ``refusals`` how often they could not.
    """

    id: str
    keys: tuple[Any, ...]
    retry_at: float | None = None
    refusals: int = 0
    refused_at: float | None = None


@dataclass(slots=True)
class Link:
    number: int
    url: str
    ticket: str | None
    is_move: bool
    since: float
    phase: Phase = Phase.OPENING
    was_ready_at: float | None = None
    asked: dict[int, Asked] = field(default_factory=dict)
    standing: WeakSet[Held] = field(default_factory=WeakSet)  # what its answers count for, and so what it sends
    problem: Failed | None = None
    newer_token: str | None = None  # than the one that its login showed
    ping_s: float = 25.0
    ping_at: float = 0.0
    heard_at: float = 0.0

    def is_quiet(self) -> bool:
        """Whether no answer is missing that anybody waits for."""
        return all(asked.kind == "ping" for asked in self.asked.values())

    def due_at(self, settings: Client) -> float:
        """When it is to be pinged or given up."""
        if self.phase is Phase.LEAVING:
            return self.since + settings.linger
        if self.phase is not Phase.READY:
            return self.since + settings.login_timeout
        return min(self.ping_at, self.silent_at(settings))

    def silent_at(self, settings: Client) -> float:
        return self.heard_at + self.ping_s * settings.silence
