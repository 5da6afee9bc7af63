"""Instructions that wait for their brokers.

A queue belongs to one life of a broker. What is in it is given again until the broker asks for what comes
after it; instructions go out in the order in which they were decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tocsin.protocol.coordination import Instruction


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

    def after(self, number: int, count: int) -> Sequence[Instruction]:
        """The first of those with higher numbers; the others have been carried out and are forgotten."""
        while self._waiting and self._waiting[0].number <= number:
            self._waiting.popleft()
        return [self._waiting[i] for i in range(min(count, len(self._waiting)))]
