"""Among whom topics are shared out: the brokers that live, as this one was told, and those that leave. Pure.

Rules kept here:

* Who was told last is believed. The coordinator tells all that live; a broker that leaves tells that it does, so that
  its topics change hands though the coordinator is away.
* Who left may still have logs, and is asked for them for a while. A newcomer is told who they are.
* A broker that leaves does not count itself, whatever it is told, unless nobody else stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tocsin.broker.upstream.topics import owner_of
from tocsin.clock import Clock
from tocsin.protocol.coordination import BrokerInfo


class Members:
    """``me`` gives this broker's name and address; they are known when it listens."""

    def __init__(self, me: Callable[[], BrokerInfo], clock: Clock, leaving_s: float) -> None:
        self._me, self._clock, self._leaving_s = me, clock, leaving_s
        self._living: dict[str, BrokerInfo] | None = None
        self._left: dict[str, tuple[BrokerInfo, float]] = {}
        self.is_leaving = False
        self.is_counted = False  # whether this broker was among the living when it was last told who they are

    @property
    def living(self) -> Mapping[str, BrokerInfo]:
        return self._living or {}

    @property
    def known(self) -> tuple[BrokerInfo, ...] | None:
        """None where nobody told."""
        return None if self._living is None else tuple(self._living.values())

    @property
    def staying(self) -> Sequence[BrokerInfo]:
        """The others that live and have not said that they leave."""
        return [b for name, b in self.living.items() if name != self._me().name and name not in self._left]

    @property
    def others(self) -> Sequence[BrokerInfo]:
        """Everybody else who may have a log."""
        now = self._clock.monotonic()
        left = {name: broker for name, (broker, until) in self._left.items() if until > now}
        return [broker for broker in {**left, **self.living}.values() if broker.name != self._me().name]

    def owner(self, topic: str) -> BrokerInfo | None:
        """Who stamps ``topic``; None where nobody is known to live."""
        name = owner_of(topic, self.living)
        return None if name is None else self.living[name]

    def tell(self, brokers: Sequence[BrokerInfo], leaving: Sequence[BrokerInfo] = ()) -> None:
        """These live, and those of ``leaving`` that do not count any more may still have logs."""
        now = {broker.name: broker for broker in brokers}
        self.is_counted = self._me().name in now
        self._settle_on(now)
        until = self._clock.monotonic() + self._leaving_s
        self._left |= {broker.name: (broker, until) for broker in leaving if broker.name not in now}

    def hear(self, leaver: BrokerInfo) -> bool:
        """``leaver`` says that it goes. Whether it counted until now, and others stay."""
        staying = {name: broker for name, broker in self.living.items() if name != leaver.name}
        is_new = bool(staying) and leaver.name in self.living
        if is_new:
            self._settle_on(staying)
        self._left[leaver.name] = (leaver, self._clock.monotonic() + self._leaving_s)
        return is_new

    def leave(self, staying: Sequence[BrokerInfo]) -> bool:
        """This broker goes, and ``staying`` are those that stay. Whether that is new."""
        self.is_leaving = True
        before = self._living
        self._settle_on({broker.name: broker for broker in staying})
        return self._living != before

    def _settle_on(self, now: dict[str, BrokerInfo]) -> None:
        if self.is_leaving and len(now) > 1:
            now = {name: broker for name, broker in now.items() if name != self._me().name}
        moment = self._clock.monotonic()
        gone = {name: (broker, moment + self._leaving_s) for name, broker in self.living.items() if name not in now}
        known = {**self._left, **gone}.items()
        self._left = {name: told for name, told in known if name not in now and told[1] > moment}
        self._living = now
