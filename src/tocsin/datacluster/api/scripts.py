"""Who may run scripts when: no bearer takes all threads, and no script runs on for nobody.

A subject runs at most all scripts but one that can run at once, so there is always a thread for the others.
Further ones of it wait, and those beyond are told to come back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from starlette.requests import Request

from tocsin.errors import LimitExceeded, TocsinError


class SenderLeft(TocsinError):
    """Whoever sent the script does not wait for its answer."""


class ScriptPlaces:
    """Used from the event loop only."""

    def __init__(self, threads: int, waiting: int, retry_after_s: float) -> None:
        self._own, self._waiting, self._retry_after_s = max(1, threads - 1), waiting, retry_after_s
        self._under_way: Counter[str] = Counter()
        self._places: dict[str, CapacityLimiter] = {}

    @asynccontextmanager
    async def place(self, subject: str) -> AsyncIterator[None]:
        """A place for one script of a subject, waited for if need be."""
        most = self._own + self._waiting
        if self._under_way[subject] >= most:
            raise LimitExceeded("scripts of one subject under way", most, retry_after_s=self._retry_after_s)
        self._under_way[subject] += 1
        places = self._places.setdefault(subject, CapacityLimiter(self._own))
        try:
            async with places:
                yield
        finally:
            self._under_way[subject] -= 1
            if not self._under_way[subject]:
                del self._under_way[subject], self._places[subject]


@asynccontextmanager
async def watched(request: Request) -> AsyncIterator[Callable[[], None]]:
    """A check that raises ``SenderLeft`` once the sender has gone, from any thread. The body must have been read."""
    has_left = threading.Event()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        has_left.set()

    def check() -> None:
        if has_left.is_set():
            raise SenderLeft("the sender has left")

    watching = asyncio.create_task(watch())
    try:
        yield check
    finally:
        watching.cancel()


def within(seconds: float) -> Callable[[], None]:
    """A check that raises once so many seconds have passed since now."""
    deadline = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise LimitExceeded("seconds a script may run", seconds)

    return check
