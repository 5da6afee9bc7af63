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
        self._waiting: deque[Instruction] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_overfull(self) -> bool:
        return len(self._waiting) > self._limit

    def put(self, instruction: Instruction) -> None:
        self._waiting.append(instruction)

    def after(self, number: int, count: int) -> Sequence[Instruction]:
        """The first of those with higher numbers; the others have been carried out and are forgotten."""
        while self._waiting and self._waiting[0].number <= number:
            self._waiting.popleft()
        return [self._waiting[i] for i in range(min(count, len(self._waiting)))]
