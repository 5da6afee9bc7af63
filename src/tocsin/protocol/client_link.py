"""One connection of a client's session, from its opening to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tocsin.config import Client
from tocsin.protocol.messages import Failed


class Phase(Enum):
    OPENING = "opening"  # the connection is being made
    LOGGING_IN = "logging in"  # login was sent
    CONFIRMING = "confirming"  # a move's destination has welcomed us
    READY = "ready"  # serves the session
    LEAVING = "leaving"  # another one does; waits for its last answers


@dataclass(slots=True)
class Asked:
    """A request that has no answer yet. ``key`` is the application's, or a subscription's id."""

    kind: str
    key: Any = None


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
    standing: set[str] = field(default_factory=set)
    problem: Failed | None = None
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
