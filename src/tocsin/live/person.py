"""A subscriber with a session of ``tocsin.client``, who comes and goes as the scenario says."""

from __future__ import annotations

import asyncio

from tocsin.client import Gap, Session, channel, connect, default_id
from tocsin.config import Client
from tocsin.errors import TocsinError
from tocsin.live.handover import Handover, Watch
from tocsin.policies.base import Point
from tocsin.protocol.inbox import UNANNOUNCED
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import Target
from tocsin.scenarios.city import Intent

SETTINGS = Client(connect_timeout=60.0, subscribe_timeout=60.0, ack_interval=5.0)


class Person:
    """``handovers`` is shared by all. ``holes`` are gaps that nobody told."""

    def __init__(self, name: str, token: str, coordinator: str, handovers: list[Handover]) -> None:
        self.name, self._token, self._coordinator = name, token, coordinator
        self._wants: dict[str, Target] = {}
        self._positions: dict[str, str] = {}
        self._session: Session | None = None
        self._watch = Watch(name, self._wanted, handovers)
        self._taking: asyncio.Task[None] | None = None
        self._arrivals = self.notifications = self.holes = self.gaps = 0
        self.problems: list[str] = []

    @property
    def breaks(self) -> int:
        """How often its connection broke."""
        return self._watch.logins - self._arrivals

    async def arrive(self, location: Point | None) -> None:
        """Log in, with what was held before."""
        session = connect(
            coordinator=self._coordinator,
            token=self._token,
            location=location,
            positions=self._positions,
            settings=SETTINGS,
            tap=self._watch,
        )
        await session.__aenter__()
        self._arrivals += 1
        self._session, self._taking = session, asyncio.create_task(self._take(session))
        for target in self._wants.values():
            await session.subscribe(target)

    async def subscribe(self, intent: Intent) -> None:
        target = channel(intent.channel, **intent.args)
        self._wants[default_id(target)] = target
        if self._session is not None:
            await self._session.subscribe(target)

    async def unsubscribe(self, intent: Intent) -> None:
        id = default_id(channel(intent.channel, **intent.args))
        self._wants.pop(id, None)
        if self._session is not None:
            await self._session.unsubscribe(id)

    async def leave(self) -> None:
        """Subscriptions stay, to come back to."""
        session, self._session = self._session, None
        if session is not None and self._taking is not None:
            self._positions = session.positions
            await session.close()
            await self._taking

    async def _take(self, session: Session) -> None:
        try:
            async for item in session.events():
                if not isinstance(item, Gap):
                    self.notifications += 1
                elif item.reason == UNANNOUNCED:
                    self.holes += 1
                else:
                    self.gaps += 1
        except TocsinError as problem:
            self.problems.append(str(problem))

    def _wanted(self) -> list[Wanted]:
        positions = self._session.positions if self._session else self._positions
        return [Wanted(id, target, positions.get(id)) for id, target in self._wants.items()]
