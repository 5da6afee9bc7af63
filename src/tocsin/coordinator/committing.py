"""Making changes durable in the order in which they were decided, many in one commit.

While one commit is under way, what comes meanwhile gathers for the next. What follows from a change, answers
included, happens after its commit. If a commit fails, what is in memory is ahead of the store and cannot be trusted;
if what follows from it fails, brokers have not heard what they should. From then on everything fails, and the program
has to start again from the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tocsin.coordinator.rows import Change
from tocsin.coordinator.store.base import Store
from tocsin.errors import Unavailable

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Pending:
    changes: Sequence[Change]
    then: Callable[[], None]
    done: asyncio.Future[None]


class Committer:
    def __init__(self, store: Store, on_failure: Callable[[], None]) -> None:
        self._store, self._on_failure = store, on_failure
        self._thread = ThreadPoolExecutor(1, "store")
        self._pending: list[_Pending] = []
        self._task: asyncio.Task[None] | None = None
        self.failure: Unavailable | None = None

    async def commit(self, changes: Sequence[Change], then: Callable[[], None]) -> None:
        """Returns when ``changes`` and all before them are durable and ``then`` was called."""
        if self.failure is not None:
            raise self.failure
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(changes, then, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await asyncio.shield(done)

    async def settled(self) -> None:
        """Returns when all that was decided so far is durable."""
        if self._pending or (self._task is not None and not self._task.done()):
            await self.commit((), lambda: None)
        elif self.failure is not None:
            raise self.failure

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._store.close()

    async def _run(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            latest = {(c.kind, c.key): c for one in batch for c in one.changes}
            try:
                if latest:
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(self._thread, self._store.save, list(latest.values()))
                for one in batch:
                    one.then()
                    if not one.done.done():
                        one.done.set_result(None)
            except Exception as error:
                self._fail(batch, error)
                return

    def _fail(self, batch: list[_Pending], error: Exception) -> None:
        problem = f"the coordinator's state could not be made durable: {error}"
        log.error(problem, exc_info=not isinstance(error, Unavailable))
        self.failure = Unavailable(problem)
        for one in (*batch, *self._pending):
            if not one.done.done():
                one.done.set_exception(self.failure)
        self._pending = []
        self._on_failure()
