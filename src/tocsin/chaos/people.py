"""People with real connections, and what their applications are given, item by item."""

from __future__ import annotations

import asyncio
from typing import Any

from tocsin.chaos.evidence import Above, ByKind, Got, Hole, Interval, Topic, Wish
from tocsin.chaos.journal import Journal
from tocsin.client import Gap, Session, Subscription, channel, connect, topic
from tocsin.config import Client
from tocsin.errors import TocsinError
from tocsin.protocol.targets import Target

SETTINGS = Client(  # patient: on a busy machine a killed cluster is away for minutes
    connect_timeout=300.0, subscribe_timeout=300.0, backoff_min=0.1, backoff_max=1.0, login_timeout=5.0
)
_EXCUSES = {"slow", "retention"}  # more is published than is kept for those who do not read it


class Person:
    """One user at one device. Its application may leave and another one come for it, with the positions of the first.

    A user may have a second device, which is a Person of the same name. Both follow the ``shared`` subscriptions, and
    each has to be given everything: these are not ended, since what one device ends is ended for the other.
    """

    def __init__(
        self, name: str, coordinator: str, token: str, names: dict[str, str], journal: Journal, device: str = ""
    ) -> None:
        self.name, self._coordinator, self._token, self._names, self._journal = name, coordinator, token, names, journal
        self.label = f"{name}{device}"
        self.shared: set[str] = set()
        self.session: Session | None = None
        self.intervals: list[Interval] = []
        self.held: dict[str, Interval] = {}
        self.problems: list[str] = []
        self._positions: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._reads = asyncio.Event()
        self._reads.set()
        self._lives = 0
        self._was_slow = False  # once is enough: the burst that it follows may come again
        self.lock = asyncio.Lock()  # arriving and leaving take their time

    # --- coming and going ---------------------------------------------------------------------------------

    async def arrive(self) -> None:
        self._lives += 1
        session = connect(
            coordinator=self._coordinator,
            token=self._token,
            settings=SETTINGS,
            session=f"{self.label}-{self._lives}",
        )
        self.session = await session.__aenter__()
        self._journal.note("arrived", user=self.label, broker=session.broker)
        for id, interval in self.held.items():
            self._follow(id, interval, self._positions.get(id))

    async def leave(self) -> None:
        """Close the application; what it has taken is known by its positions."""
        session, self.session = self.session, None
        if session is None:
            return
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        self._positions = dict(session.positions)
        await session.close()
        self._journal.note("left", user=self.label, positions=self._positions)

    def cut(self) -> None:
        """Break its connections, as a network does."""
        for transport in _transports(self.session):
            transport.abort()

    def pause(self) -> None:
        """Take nothing, and read nothing."""
        self._reads.clear()
        self._was_slow = True
        for interval in self.held.values():
            interval.excused |= _EXCUSES
        for transport in _transports(self.session):
            transport.pause_reading()

    def resume(self) -> None:
        self._reads.set()
        for transport in _transports(self.session):
            transport.resume_reading()

    # --- subscriptions --------------------------------------------------------------------------------------

    def subscribe(self, id: str, wish: Wish) -> None:
        interval = Interval(f"{self.label}/{id}", wish)
        if self._was_slow:
            interval.excused |= _EXCUSES
        self.intervals.append(interval)
        self.held[id] = interval
        self._journal.note("subscribing", user=self.label, id=id, wish=str(wish))
        if self.session is not None:
            self._follow(id, interval, None)

    async def unsubscribe(self, id: str) -> None:
        interval = self.held.pop(id)
        self._positions.pop(id, None)
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        interval.ended = self._journal.note("unsubscribing", user=self.label, id=id)
        if self.session is not None:
            await self.session.unsubscribe(id)
            self._journal.note("unsubscribed", user=self.label, id=id)

    def _follow(self, id: str, interval: Interval, position: str | None) -> None:
        assert self.session is not None
        subscription = self.session.subscribe(self._target(interval.wish), id=id, position=position)
        self._tasks[id] = asyncio.create_task(self._collect(subscription, interval))

    async def _collect(self, subscription: Subscription, interval: Interval) -> None:
        try:
            await subscription
            self._stood(subscription, interval)
            while True:
                await self._reads.wait()
                self._take(await anext(subscription), interval)
        except StopAsyncIteration:
            return
        except TocsinError as problem:
            self.problems.append(f"{interval.id}: {problem}")
            self._journal.tell("broken", id=interval.id, problem=str(problem))

    def _stood(self, subscription: Subscription, interval: Interval) -> None:
        standing = subscription.standing
        if interval.stood is not None or standing is None:
            return
        interval.position = standing.position
        interval.stood = self._journal.note("stands", id=interval.id, at=standing.position, stream=standing.stream)

    def _take(self, item: Any, interval: Interval) -> None:
        if isinstance(item, Gap):
            interval.seen.append(Hole(item.after, item.through, item.count, item.reason))
            self._journal.note(
                "gap", id=interval.id, after=item.after, through=item.through, count=item.count, reason=item.reason
            )
            return
        payload = item.payload
        interval.seen.append(Got(payload["source"], payload["n"], item.through))
        self._journal.note(
            "got", id=interval.id, source=payload["source"], n=payload["n"], after=item.after, through=item.through
        )

    def _target(self, wish: Wish) -> Target:
        match wish:
            case Topic(name):
                return topic(name)
            case ByKind(kind):
                return channel(self._names["ByKind"], kind)
            case Above(bound):
                return channel(self._names["Above"], bound)


def _transports(session: Session | None) -> list[asyncio.Transport]:
    """The sockets of a session. The library hides them with good reason; hurting them is what we are here for."""
    sockets = [wire._socket for wire in session._wires.values()] if session else []
    return [socket.transport for socket in sockets if socket is not None]
