"""When subscribers come, subscribe, leave and return.

As in the paper (section 6.1.2) all log in during the first four minutes and subscribe during the next
four. After that a share of them logs out and returns some minutes later; every second one of those gives up a
subscription on the return. Times are scenario seconds, before compression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import groupby
from typing import Protocol

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.audience import Intent
from tocsin.scenarios.recording import Event


class Act(StrEnum):
    LOGIN = "login"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LOGOUT = "logout"


class Acts(Protocol):
    """When somebody does something; every timetable is a frozen dataclass, so that it can be recorded."""

    def events(self, users: Sequence[str], intents: Sequence[Intent], rng: np.random.Generator) -> list[Event]:
        """What the users do, in order of time."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """As in the paper, which does not say how many leave: ``churn`` is ours."""

    login_s: float = 240.0
    subscribe_s: float = 240.0
    churn: float = 0.1  # share of the subscribers who leave and return
    leave_s: float = 600.0  # how long after the subscriptions the last of them has left
    away_s: tuple[float, float] = (60.0, 300.0)

    def events(self, users: Sequence[str], intents: Sequence[Intent], rng: np.random.Generator) -> list[Event]:
        """What the users do, in order of time."""
        if min(self.login_s, self.subscribe_s, self.leave_s, *self.away_s) < 0 or not 0 <= self.churn <= 1:
            raise BadArgument("timetable", "durations from 0 on and a churn from 0 to 1", self)
        acts = [*self._logins(users, rng), *self._subscriptions(intents, rng)]
        acts += self._absences(users, intents, rng)
        return sorted(acts, key=lambda event: event.t)

    def _logins(self, users: Sequence[str], rng: np.random.Generator) -> Iterator[Event]:
        for user, t in zip(users, rng.uniform(0.0, self.login_s, len(users)).tolist(), strict=True):
            yield Event(t, Act.LOGIN, {"user": user})

    def _subscriptions(self, intents: Sequence[Intent], rng: np.random.Generator) -> Iterator[Event]:
        times = self.login_s + rng.uniform(0.0, self.subscribe_s, len(intents))
        for intent, t in zip(intents, times.tolist(), strict=True):
            yield Event(t, Act.SUBSCRIBE, asdict(intent))

    def _absences(self, users: Sequence[str], intents: Sequence[Intent], rng: np.random.Generator) -> Iterator[Event]:
        owned = {intent.user: intent for intent in intents}
        settled = self.login_s + self.subscribe_s
        for i in np.flatnonzero(rng.random(len(users)) < self.churn).tolist():
            left = settled + rng.uniform(0.0, self.leave_s)
            back = left + rng.uniform(*self.away_s)
            yield Event(left, Act.LOGOUT, {"user": users[i]})
            yield Event(back, Act.LOGIN, {"user": users[i]})
            if rng.random() < 0.5 and users[i] in owned:
                yield Event(back, Act.UNSUBSCRIBE, asdict(owned[users[i]]))


@dataclass(frozen=True, slots=True)
class Residents:
    """For a run that is shorter than four minutes: most are there and have subscribed when it begins.

    The last ``late`` of them come one after the other from ``first_s`` on and before ``last_s``, each with all that
    they want. Nobody leaves.
    """

    first_s: float
    last_s: float
    late: float = 0.1

    def events(self, users: Sequence[str], intents: Sequence[Intent], rng: np.random.Generator) -> list[Event]:
        """What the users do, in order of time; who wants nothing does nothing."""
        if not (0 <= self.first_s <= self.last_s and 0 <= self.late <= 1):
            raise BadArgument("residents", "0 ≤ first_s ≤ last_s and a share late from 0 to 1", self)
        wishes = [list(wanted) for _, wanted in groupby(intents, key=lambda intent: intent.user)]
        present = len(wishes) - round(self.late * len(wishes))
        times = [0.0] * present + np.linspace(self.first_s, self.last_s, len(wishes) - present, endpoint=False).tolist()
        return [act for t, wanted in zip(times, wishes, strict=True) for act in self._arrival(t, wanted)]

    def _arrival(self, t: float, wanted: Sequence[Intent]) -> Iterator[Event]:
        yield Event(t, Act.LOGIN, {"user": wanted[0].user})
        yield from (Event(t, Act.SUBSCRIBE, asdict(intent)) for intent in wanted)
