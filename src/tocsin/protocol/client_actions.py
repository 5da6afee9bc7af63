"""What a client's session asks its surroundings to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.errors import TocsinError
from tocsin.protocol.inbox import Item
from tocsin.protocol.messages import FromClient


@dataclass(frozen=True, slots=True)
class Locate:
    """Ask the coordinator where the user belongs; tell ``located`` or ``not_located``."""


@dataclass(frozen=True, slots=True)
class Open:
    """Connect to the broker at ``url``; tell ``opened`` with a token, or ``closed``."""

    link: int
    url: str


@dataclass(frozen=True, slots=True)
class Send:
    link: int
    message: FromClient


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection, or give up opening it. Nothing that it tells counts any more."""

    link: int
    code: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A request of the application has its answer."""

    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Fail:
    """A request of the application was refused or lost."""

    key: Any
    error: TocsinError


@dataclass(frozen=True, slots=True)
class Ready:
    """Something waits for the application in a subscription."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Stop:
    """A subscription that stood does not any more, and will not come back. ``rest`` is what waited in it."""

    subscription: str
    error: TocsinError
    rest: Sequence[Item] = ()


@dataclass(frozen=True, slots=True)
class Connected:
    """Every subscription stands at a broker."""

    user: str
    broker: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """No broker serves the session; it tries to come back."""

    reason: str


@dataclass(frozen=True, slots=True)
class RenewToken:
    """The token nears its end; tell ``renewed`` with another."""


@dataclass(frozen=True, slots=True)
class End:
    """The session is over; without an error where the application closed it."""

    error: TocsinError | None


Action = Locate | Open | Send | Close | Answer | Fail | Ready | Stop | Connected | Disconnected | RenewToken | End
