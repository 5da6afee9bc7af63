"""What every route shares, and who may do what.

| who                                    | may                                                    |
|----------------------------------------|--------------------------------------------------------|
| ``broker:<name>``                      | register, report and obey as that broker               |
| any broker                             | ask for placements, keep and end subscriptions         |
| a user                                 | ask for its own placement, and see itself              |
| ``read``                               | see everything                                         |
| ``coordinator``, ``admin``             | everything                                             |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from tocsin.coordinator.metrics import Metrics
from tocsin.coordinator.service import Coordinator
from tocsin.coordinator.world import World
from tocsin.errors import Refused
from tocsin.tokens import Principal

_BROKER = "broker:"


@dataclass(frozen=True, slots=True)
class ApiLimits:
    body_bytes: int = 16_000_000
    body_timeout_s: float = 30.0
    wait_s: float = 30.0
    page: int = 1000  # users, assignments or moves in one answer


class Api:
    """One per application, at ``app.state.api``."""

    def __init__(
        self,
        service: Coordinator,
        verify: Callable[[str], Principal],
        limits: ApiLimits,
        configured: str,
        *,
        insecure: bool,
        open_metrics: bool,
    ) -> None:
        self.service, self.verify, self.limits, self.configured = service, verify, limits, configured
        self.insecure, self.open_metrics = insecure, open_metrics or insecure
        self.is_draining = False

    @property
    def metrics(self) -> Metrics:
        return self.service.metrics

    async def world(self) -> World:
        """All that is known, durable by now."""
        await self.service.settled()
        return self.service.state.world

    def drain(self) -> None:
        self.is_draining = True
        self.service.wake_all()


async def _api(request: Request) -> Api:
    api: Api = request.app.state.api
    return api


Shared = Annotated[Api, Depends(_api)]


def check_broker_of(who: Principal, name: str) -> None:
    if not (who.may("broker", name) or who.may("coordinator")):
        raise Refused(f"speaking as the broker {name!r} needs the capability 'broker:{name}'")


def check_for_user(who: Principal, user: str) -> None:
    """Whether ``who`` may ask where ``user`` is."""
    if not (who.subject == user or broker_of(who) or who.may("coordinator")):
        raise Refused("another user's placement is told to brokers, and with the capability 'coordinator'")


def check_keeps(who: Principal) -> None:
    if not (broker_of(who) or who.may("coordinator")):
        raise Refused("keeping subscriptions is for brokers, or needs the capability 'coordinator'")


def check_reads(who: Principal, user: str | None = None) -> None:
    if not (who.may("read") or who.may("coordinator") or broker_of(who) or (user is not None and who.subject == user)):
        raise Refused("this needs the capability 'read' or 'coordinator'")


def check_rules(who: Principal) -> None:
    if not who.may("coordinator"):
        raise Refused("this needs the capability 'coordinator'")


def broker_of(who: Principal) -> str | None:
    """The broker that the bearer is, if it is one."""
    named = (c[len(_BROKER) :] for c in who.capabilities if isinstance(c, str) and c.casefold().startswith(_BROKER))
    return next(named, None)
