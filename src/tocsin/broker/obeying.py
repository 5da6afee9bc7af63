"""Carrying out what the coordinator instructs.

Instructions of one user are carried out in their order, those of different users side by side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from tocsin.broker.ports import Residents
from tocsin.broker.tasks import Tasks
from tocsin.errors import TocsinError
from tocsin.protocol.coordination import Adopt, Outcome, Release, Send

log = logging.getLogger(__name__)


class Obeying:
    """``done`` hears how each ended."""

    def __init__(self, residents: Residents, tasks: Tasks, done: Callable[[Outcome], None]) -> None:
        self._residents, self._tasks, self._done = residents, tasks, done
        self._last: dict[str, asyncio.Task[None]] = {}

    @property
    def is_idle(self) -> bool:
        return all(task.done() for task in self._last.values())

    def begin(self, instruction: Adopt | Send | Release) -> None:
        before = self._last.get(instruction.user)
        task = self._tasks.spawn(self._carry_out(instruction, before))
        self._last[instruction.user] = task
        task.add_done_callback(lambda done: self._over(instruction.user, done))

    def _over(self, user: str, done: asyncio.Task[None]) -> None:
        if self._last.get(user) is done:
            del self._last[user]

    async def _carry_out(self, instruction: Adopt | Send | Release, before: asyncio.Task[None] | None) -> None:
        """When the one before it is over; only a ``Send`` is overtaken, for it lasts until all have left."""
        if before is not None and not before.get_name().startswith("send"):
            await asyncio.wait({before})
        task = asyncio.current_task()
        assert task is not None
        task.set_name(f"{type(instruction).__name__.lower()} {instruction.user}")
        self._done(await _outcome(self._residents, instruction))


async def _outcome(residents: Residents, instruction: Adopt | Send | Release) -> Outcome:
    try:
        match instruction:
            case Adopt():
                await residents.adopt(instruction.user, instruction.version, instruction.subscriptions)
            case Send():
                await residents.send(instruction.user, instruction.version, instruction.to, instruction.ticket)
            case Release():
                await residents.release(instruction.user, instruction.version)
        return Outcome(instruction.number, True)
    except TocsinError as problem:
        return Outcome(instruction.number, False, str(problem)[:300])
    except Exception as problem:
        log.exception("an instruction failed")
        return Outcome(instruction.number, False, f"{type(problem).__name__}: {problem}"[:300])
