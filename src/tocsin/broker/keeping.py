"""Subscriptions made durable at the coordinator, many in a request.

While one request is under way, what comes meanwhile gathers for the next: a login with a thousand subscriptions costs
one or two, and so do a thousand logins at once. There is one request at a time, so what is told of a subscription
arrives in its order. Each that waits is answered for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tocsin.broker.coordinator_client import CoordinatorClient
from tocsin.broker.tasks import Tasks
from tocsin.errors import TocsinError, Unavailable
from tocsin.protocol.coordination import Kept

log = logging.getLogger(__name__)


class NotKept(TocsinError):
    """The coordinator refused a subscription; ``code`` is its name for the reason."""

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class _Told:
    kept: Kept
    size: int
    done: asyncio.Future[None]

    def end(self, problem: TocsinError | None) -> None:
        if self.done.done():  # nobody waits any more
            return
        if problem is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(problem)


class Keeper:
    """``batch_bytes`` bound a request, which has one subscription at least."""

    def __init__(self, client: CoordinatorClient, batch_bytes: int, tasks: Tasks) -> None:
        self._client, self._batch_bytes, self._tasks = client, batch_bytes, tasks
        self._waiting: deque[_Told] = deque()
        self._task: asyncio.Task[None] | None = None

    async def tell(self, kept: Kept) -> None:
        """Returns when it is durable. NotKept where it was refused, Unavailable where the coordinator is away."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Told(kept, len(msgspec.json.encode(kept)), done))
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._run())
        await done

    async def _run(self) -> None:
        while self._waiting:
            batch = self._batch()
            try:
                await self._send(batch)
            finally:
                for told in batch:  # those that were not answered, for this ends
                    told.end(Unavailable("the coordinator was not heard"))

    def _batch(self) -> Sequence[_Told]:
        batch = [self._waiting.popleft()]
        size = batch[0].size
        while self._waiting and (size := size + self._waiting[0].size) <= self._batch_bytes:
            batch.append(self._waiting.popleft())
        return batch

    async def _send(self, batch: Sequence[_Told]) -> None:
        try:
            answer = await self._client.keep([told.kept for told in batch])
        except TocsinError as problem:
            for told in batch:
                told.end(problem)
            return
        except Exception:  # those behind them are told all the same
            log.exception("telling the coordinator of subscriptions failed")
            return
        refused = {one.index: NotKept(one.code, one.detail) for one in answer.refused}
        for index, told in enumerate(batch):
            told.end(refused.get(index))
