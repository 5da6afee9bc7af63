"""People with real connections: each asks the coordinator for its broker, logs in there and subscribes.

They stay until they are stopped, with tokens that are renewed. What they are told is remembered until ``end_counting``.
They live in an event loop in a thread of their own; the rest of the demonstration talks to it from outside.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

from tocsin.client import Gap, Session, Subscription, channel, connect
from tocsin.config import Client
from tocsin.demo.heard import Heard
from tocsin.demo.work import Work
from tocsin.errors import TocsinError, Unavailable
from tocsin.scenarios.city import Intent

LOGINS = 16  # at once
PATIENCE_S = 600.0  # for all to be logged in and subscribed, on a machine that is busy
LEAVE_S = 60.0


class Crowd:
    """``heard`` grows as people subscribe; ``arrivals`` are reports with the moment when a client had them."""

    def __init__(self, coordinator: str, token: Callable[[str], str], is_connected: Callable[[str], bool]) -> None:
        self._coordinator, self._token, self._is_connected = coordinator, token, is_connected
        self.heard: list[Heard] = []
        self.arrivals: list[tuple[str, float]] = []
        self.people = 0
        self.brokers: set[str] = set()
        self._is_counting = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_begun = threading.Event()
        self._work = Work("crowd", lambda stopping: asyncio.run(self._live(stopping)))

    def start(self) -> None:
        self._work.start()
        self._has_begun.wait(PATIENCE_S)

    def stop(self) -> None:
        self._work.stop(LEAVE_S)

    def check(self) -> None:
        """Raise what ended it."""
        if self._work.is_done:
            raise Unavailable("the people of the demonstration have gone")

    def arrive(self, intents: Sequence[Intent], wait_s: float = 0.0) -> None:
        """Have those of them who connect log in and subscribe; with ``wait_s``, until they have."""
        people = [
            (user, list(wanted))
            for user, wanted in groupby(intents, key=lambda intent: intent.user)
            if self._is_connected(user)
        ]
        assert self._loop is not None
        done = asyncio.run_coroutine_threadsafe(self._arrive(people), self._loop)
        try:
            if wait_s:
                done.result(wait_s)
        except TimeoutError:
            raise Unavailable(f"{len(people):,} people were not logged in after {wait_s:.0f} s") from None

    def end_counting(self) -> None:
        """From here on people are told, and nobody remembers of what."""
        self._is_counting = False
        self.heard, self.arrivals = [], []

    @property
    def notifications(self) -> int:
        return len(self.arrivals)

    async def _live(self, stopping: threading.Event) -> None:
        self._loop, self._doors = asyncio.get_running_loop(), asyncio.Semaphore(LOGINS)
        self._sessions: list[Session] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_begun.set()
        while not stopping.is_set():
            await asyncio.sleep(0.1)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(session.close() for session in self._sessions), return_exceptions=True)

    async def _arrive(self, people: Sequence[tuple[str, list[Intent]]]) -> None:
        await asyncio.gather(*(self._log_in(user, wanted) for user, wanted in people))

    async def _log_in(self, user: str, wanted: Sequence[Intent]) -> None:
        heard = [Heard(user, intent.channel) for intent in wanted]
        self.heard += heard
        try:
            async with self._doors:
                settings = Client(connect_timeout=PATIENCE_S, subscribe_timeout=PATIENCE_S)
                session = await connect(
                    coordinator=self._coordinator, token=partial(self._token, user), settings=settings
                ).__aenter__()
        except TocsinError as problem:
            heard[0].problem = f"logging in failed: {problem}"
            return
        self.people += 1
        self.brokers.add(session.broker)
        self._sessions.append(session)
        await asyncio.gather(*(self._subscribe(session, *pair) for pair in zip(wanted, heard, strict=True)))

    async def _subscribe(self, session: Session, intent: Intent, heard: Heard) -> None:
        subscription = session.subscribe(channel(intent.channel, **intent.args))
        try:
            await subscription
        except TocsinError as problem:
            heard.problem = f"subscribing failed: {problem}"
            return
        standing = subscription.standing
        assert standing is not None
        heard.position, heard.backend = standing.position, int(standing.stream.rpartition("/")[2])
        task = asyncio.create_task(self._follow(subscription, heard))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, subscription: Subscription, heard: Heard) -> None:
        last = heard.position
        try:
            async for item in subscription:
                if not self._is_counting:
                    continue
                if isinstance(item, Gap):
                    heard.gaps.append(f"a gap was told: {item.count} after {item.after} ({item.reason})")
                    continue
                report = item.payload["report_id"]
                heard.out_of_order += item.through <= last
                last = item.through
                heard.reports.append(report)
                self.arrivals.append((report, time.monotonic()))
        except TocsinError as problem:
            heard.problem = f"the subscription ended: {problem}"
