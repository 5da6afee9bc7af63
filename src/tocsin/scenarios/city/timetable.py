"""When subscribers come, subscribe, leave and return.

As in the paper (section 6.1.2) all log in during the first four minutes and subscribe during the next
four. After that, optionally, a share of them logs out and returns some minutes later; every second
one of those gives up a subscription on the return. Times are scenario seconds, before compression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

import numpy as np

from tocsin.errors import BadArgument
from tocsin.scenarios.city.audience import Intent
from tocsin.scenarios.recording import Event


class Act(StrEnum):
    LOGIN = "login"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    LOGOUT = "logout"


@dataclass(frozen=True, slots=True)
class Timetable:
    login_s: float = 240.0
    subscribe_s: float = 240.0
    churn: float = 0.0  # share of the subscribers who leave and return
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
