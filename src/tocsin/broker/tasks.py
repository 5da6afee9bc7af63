"""Work beside whoever asked for it: kept until it is done, and never failing unseen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from tocsin.errors import TocsinError

log = logging.getLogger(__name__)


class Tasks:
    """``owner`` is named where something fails that nobody foresaw."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for ``work``, which goes on to its end though whoever waits is cancelled."""
        await asyncio.shield(self.spawn(work))

    async def stop(self) -> None:
        """Cancel what runs, and wait until it is over."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not isinstance(problem, TocsinError):
            log.error("%s: something failed unexpectedly", self._owner, exc_info=problem)
