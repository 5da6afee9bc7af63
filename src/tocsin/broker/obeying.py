"""Carrying out what the coordinator instructs.

Instructions of one user begin in their order, those of different users side by side. The next one of a user begins
when the last is over; but after a ``Send``, which lasts until all have left, as soon as that has begun.
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
        self._last: dict[str, asyncio.Event] = {}  # of each user's last: set once the next may begin
        self._failed: set[str] = set()  # users whose last adoption failed: the coordinator asks for it again

    @property
    def is_idle(self) -> bool:
        return not self._last and not self._failed

    def begin(self, instruction: Adopt | Send | Release) -> None:
        before, passed = self._last.get(instruction.user), asyncio.Event()
        self._last[instruction.user] = passed
        task = self._tasks.spawn(self._carry_out(instruction, before, passed))
        task.add_done_callback(lambda _: self._over(instruction.user, passed))

    def _over(self, user: str, passed: asyncio.Event) -> None:
        if self._last.get(user) is passed:
            del self._last[user]

    async def _carry_out(
        self, instruction: Adopt | Send | Release, before: asyncio.Event | None, passed: asyncio.Event
    ) -> None:
        if before is not None:
            await before.wait()
        if isinstance(instruction, Send):
            passed.set()
        try:
            outcome = await _outcome(self._residents, instruction)
            self._note(instruction, outcome)
            self._done(outcome)
        finally:
            passed.set()

    def _note(self, instruction: Adopt | Send | Release, outcome: Outcome) -> None:
        if isinstance(instruction, Adopt) and not outcome.ok:
            self._failed.add(instruction.user)
        elif not isinstance(instruction, Send):
            self._failed.discard(instruction.user)


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
