"""A session's requests under way: some one after the other, some beside them, never more than allowed.

It exists only while there is something under way, so an idle session costs nothing for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger(__name__)
Work = Callable[[], Coroutine[Any, Any, None]]


class Requests:
    """``hold`` is told whether there are as many as ``limit``, and nothing more is to be read from the client.

    ``on_idle`` is called when nothing is under way any more, ``on_failure`` when something failed unexpectedly.
    """

    __slots__ = ("_hold", "_limit", "_on_failure", "_on_idle", "_ordering", "_queue", "_tasks")

    def __init__(
        self,
        hold: Callable[[bool], None],
        limit: int,
        on_idle: Callable[[], None],
        on_failure: Callable[[], None],
    ) -> None:
        self._hold, self._limit, self._on_idle, self._on_failure = hold, limit, on_idle, on_failure
        self._queue: deque[Work] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ordering: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._tasks) + len(self._queue)

    def enqueue(self, work: Work) -> None:
        """Run after everything that was enqueued before; counts as ``run``'s work does."""
        is_idle = not self._queue
        self._queue.append(work)
        if is_idle:
            self._ordering = self.run(self._in_order)
        else:
            self._throttle()

    def run(self, work: Work) -> asyncio.Task[None]:
        """Run beside all others; nothing more is read from the client while there are too many."""
        task = asyncio.get_running_loop().create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        self._throttle()
        return task

    def cancel_ordered(self) -> bool:
        """Leave off what was enqueued; whether anything is under way beside it."""
        self._queue.clear()
        if self._ordering is not None:
            self._ordering.cancel()
        return bool(self._tasks - {self._ordering})

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._queue.clear()

    async def _in_order(self) -> None:
        while self._queue:
            await self._queue[0]()
            if len(self._queue) > 1:
                await asyncio.sleep(0)  # others have their turn, though nothing had to be waited for here
            if self._queue:
                self._queue.popleft()
            self._throttle()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._throttle()
        if not task.cancelled() and task.exception() is not None:
            log.error("a request failed unexpectedly", exc_info=task.exception())
            self._on_failure()
        if not self._tasks:
            self._on_idle()

    def _throttle(self) -> None:
        self._hold(len(self) >= self._limit)
