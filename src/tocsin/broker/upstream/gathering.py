"""Questions to one broker or to the data cluster, many in a request.

While one request is under way, what is asked meanwhile gathers for the next, so a thousand topics are a few requests.
The other side answers the first of what it was asked, as many as fit in its answer; the rest is asked again. Each
question is answered for itself, and a request goes on to its end though nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

from tocsin.broker.tasks import Tasks
from tocsin.errors import TocsinError, Unavailable

Q = TypeVar("Q")
T = TypeVar("T")


class Gathering(Generic[Q, T]):
    """``send`` puts ``limit`` questions at most, and gives the answers to the first of them; an error is one too."""

    def __init__(
        self, send: Callable[[Sequence[Q]], Awaitable[Sequence[T | TocsinError]]], limit: int, tasks: Tasks
    ) -> None:
        self._send, self._limit, self._tasks = send, limit, tasks
        self._waiting: deque[tuple[Q, asyncio.Future[T]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> T:
        """The answer; Unavailable, or what ``send`` raises, where there is none."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._task is None or self._task.done():
            self._task = self._tasks.spawn(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._round()
        finally:
            while self._waiting:  # this ends, and with it their hope
                _fail(self._waiting.popleft()[1], Unavailable("nobody asks any more"))

    async def _round(self) -> None:
        asked = [question for question, _ in islice(self._waiting, self._limit)]
        try:
            answers = await self._send(asked)
            if not answers:
                raise Unavailable("the answer says nothing of what was asked")
        except Exception as problem:  # one that nobody foresaw is the askers' to tell, too
            for _ in asked:
                _fail(self._waiting.popleft()[1], problem)
            return
        for answer in answers[: len(asked)]:
            waiting = self._waiting.popleft()[1]
            if isinstance(answer, TocsinError):
                _fail(waiting, answer)
            elif not waiting.done():
                waiting.set_result(answer)


def _fail(waiting: asyncio.Future[T], problem: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(problem)
