"""Instructions that wait for their brokers.

A queue belongs to one life of a broker. What is in it is given again until the broker asks for what comes
after it; instructions go out in the order in which they were decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tocsin.protocol.coordination import Adopt, Instruction


class Queue:
    def __init__(self, incarnation: str, limit: int) -> None:
        self.incarnation, self._limit = incarnation, limit
        self._briefing: int | None = None
        self._waiting: deque[Instruction] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_overfull(self) -> bool:
        """Whether more than ``limit`` came after the briefing, which is as long as it has to be."""
        return self._briefing is not None and len(self._waiting) > self._briefing + self._limit

    def end_briefing(self) -> None:
        """What a broker hears when it registers is all there."""
        self._briefing = len(self._waiting)

    def put(self, instruction: Instruction) -> None:
        self._waiting.append(instruction)

    def after(self, number: int, size: int) -> Sequence[Instruction]:
        """The first of those with higher numbers, one at least and together no larger than ``size``; those before have
        been carried out and are forgotten."""
        while self._waiting and self._waiting[0].number <= number:
            self._waiting.popleft()
        found: list[Instruction] = []
        for instruction in self._waiting:
            size -= 1 + (len(instruction.subscriptions) if isinstance(instruction, Adopt) else 0)
            if found and size < 0:
                break
            found.append(instruction)
        return found
