"""Trying until brokers agree who stamps a topic, for they do not learn who lives at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tocsin.broker.tasks import Tasks
from tocsin.broker.upstream.backoff import Backoff
from tocsin.broker.upstream.peers import NotSettled
from tocsin.clock import Clock
from tocsin.errors import TocsinError

log = logging.getLogger(__name__)


class Settling:
    """``bring`` brings a topic to where it should be, while it ``is_wanted``; ``failed`` hears where it could not."""

    def __init__(
        self,
        tasks: Tasks,
        clock: Clock,
        backoff: Callable[[], Backoff],
        bring: Callable[[str], Awaitable[None]],
        failed: Callable[[str], None],
        is_wanted: Callable[[str], bool],
    ) -> None:
        self._tasks, self._clock, self._backoff = tasks, clock, backoff
        self._bring, self._failed, self._is_wanted = bring, failed, is_wanted
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()  # asked for while they were being settled

    def later(self, topic: str) -> None:
        """Beside what asks for it, and once at a time."""
        running = self._running.get(topic)
        if running is None or running.done():
            task = self._tasks.spawn(self._settle(topic))
            self._running[topic] = task
            task.add_done_callback(lambda done: self._settled(topic, done))
        else:
            self._again.add(topic)

    async def until_done(self, step: Callable[[], Coroutine[Any, Any, str]], within_s: float) -> str:
        """Try until it is done or the time is over.

        What was sent to a peer and not answered is not tried again: it may have been done.
        """
        deadline, backoff = self._clock.monotonic() + within_s, self._backoff()
        while True:
            try:
                return await step()
            except NotSettled:
                if self._clock.monotonic() >= deadline:
                    raise
            await backoff.pause()

    async def _settle(self, topic: str) -> None:
        backoff, level = self._backoff(), logging.INFO  # once; while brokers stop it would be said over and over
        while self._is_wanted(topic):
            self._again.discard(topic)
            try:
                await self._bring(topic)
                if topic not in self._again:
                    return
                continue
            except TocsinError as problem:
                log.log(level, "the topic %s is not settled yet: %s", topic, problem)
                level = logging.DEBUG
                self._failed(topic)
            await backoff.pause()

    def _settled(self, topic: str, done: asyncio.Task[None]) -> None:
        if self._running.get(topic) is done:
            del self._running[topic]
            self._again.discard(topic)
