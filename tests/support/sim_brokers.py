"""Brokers and their people in a few dictionaries, which obey the coordinator's instructions at least once.

They keep to what ``tocsin.protocol.coordination`` promises: an instruction under an older version than known is
ignored, an outcome is told until a report that has it was answered, and everything may be told twice. What is held
beyond an adoption, and was told, they ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from tocsin.coordinator.events import BrokerRegistered, BrokerReported
from tocsin.protocol.coordination import (
    Adopt,
    Arrival,
    Holding,
    Instruction,
    Kept,
    Load,
    Outcome,
    Registration,
    Release,
    Report,
    Send,
)

_lives = count(1)


@dataclass
class SimBroker:
    name: str
    incarnation: str = ""
    is_running: bool = False
    is_draining: bool = False
    held: dict[str, set[str]] = field(default_factory=dict)  # user → subscription ids
    online: set[str] = field(default_factory=set)
    versions: dict[str, int] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    admitted: list[str] = field(default_factory=list)
    noted: dict[tuple[str, str], Kept] = field(default_factory=dict)  # while the coordinator could not be told
    sends: dict[str, Send] = field(default_factory=dict)  # users told to go, who have not gone yet
    streams: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of users; of others it is "s"
    rates: Mapping[str, float] = field(default_factory=dict)
    after: int = 0
    wants_full: bool = True

    def start(self) -> None:
        fresh = SimBroker(self.name, f"{self.name}-{next(_lives)}", True, streams=self.streams, rates=self.rates)
        self.__dict__.update(fresh.__dict__)

    def kill(self) -> None:
        self.is_running, self.online = False, set()

    def registration(self) -> BrokerRegistered:
        self.wants_full = True
        return BrokerRegistered(self.name, Registration(self.incarnation, f"http://{self.name}:1"))

    def report(self) -> BrokerReported:
        holdings = [Holding(user, self.streams.get(user, ["s"])) for user in sorted(self.online)]
        return BrokerReported(
            self.name,
            Report(
                self.incarnation,
                Load(),
                is_full=True,
                is_draining=self.is_draining,
                rates=self.rates,
                holdings=holdings,
                outcomes=tuple(self.outcomes),
                arrivals=tuple(self.arrivals),
                admitted=tuple(self.admitted),
                kept=tuple(self.noted.values()),
            ),
        )

    def answered(self, report: Report) -> None:
        """That report was taken: what it told need not be told again."""
        self.outcomes = [o for o in self.outcomes if o not in report.outcomes]
        self.arrivals = [a for a in self.arrivals if a not in report.arrivals]
        self.admitted = [a for a in self.admitted if a not in report.admitted]
        self.noted = {key: word for key, word in self.noted.items() if word not in report.kept}

    def obey(self, instruction: Instruction, kept_of: Callable[[str], Collection[str]], *, fails: bool = False) -> None:
        self.after = max(self.after, instruction.number)
        match instruction:
            case Adopt(number, user, version, subscriptions):
                if version >= self.versions.get(user, 0) and not fails:
                    self.versions[user] = version
                    self._hold(user, {wanted.id for wanted in subscriptions}, kept_of)
                self.outcomes.append(Outcome(number, not fails, "no room" if fails else ""))
            case Release(number, user, version):
                if version >= self.versions.get(user, 0):
                    self.versions[user] = version
                    self.held.pop(user, None)
                    self.online.discard(user)
                    self.sends.pop(user, None)
                self.outcomes.append(Outcome(number, True))
            case Send(number, user, version, _, _):
                if version < self.versions.get(user, 0) or user not in self.online:
                    self.outcomes.append(Outcome(number, True))
                else:
                    self.sends[user] = instruction

    def _hold(self, user: str, named: set[str], kept_of: Callable[[str], Collection[str]]) -> None:
        held = self.held.setdefault(user, set())
        doubted = {id for id in held - named if (user, id) not in self.noted}
        held -= doubted - set(kept_of(user))
        held |= named

    def login(self, user: str) -> bool:
        """A client with a ticket for this broker."""
        if self.is_running and user in self.held:
            self.online.add(user)
        return user in self.online

    def leave(self, user: str) -> None:
        """The client is gone; of one that was let in unasked, nothing remains but what it subscribed."""
        self.online.discard(user)
        if user in self.admitted:
            self.admitted.remove(user)
            if not self.held.get(user):
                self.held.pop(user, None)

    def follow(self, user: str, to: SimBroker, *, confirms: bool = True, stays: bool = False) -> None:
        """The client does as its broker said: connects to ``to``, confirms there, leaves here.

        Another session of the same user ``stays`` where it is.
        """
        send = self.sends.pop(user)
        if not (to.is_running and user in to.held and to.versions[user] == send.version):
            self.sends[user] = send
            return
        to.online.add(user)
        if confirms:
            to.arrivals.append(Arrival(user, send.version))
        if stays:
            self.sends[user] = send
            return
        self.online.discard(user)
        self.outcomes.append(Outcome(send.number, True))
