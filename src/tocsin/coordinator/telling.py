"""What brokers were told and have not answered, and what they are to be told again.

Looked at for every user of a broker that died, so each question is answered without going through all of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Did(StrEnum):
    ADOPT = "adopt"
    SEND = "send"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Told:
    """An instruction whose outcome has not come."""

    broker: str
    did: Did
    user: str
    version: int


class Telling:
    def __init__(self) -> None:
        self._told: dict[int, Told] = {}
        self._again: deque[tuple[float, Told]] = deque()  # in the order of their times
        self._awaited: Counter[Told] = Counter()  # in either

    def add(self, number: int, told: Told) -> None:
        self._told[number] = told
        self._count(told, 1)

    def answered(self, number: int, broker: str) -> Told | None:
        """What ``broker`` was told under the number, which is over; None where it was not, or not any more."""
        told = self._told.get(number)
        if told is None or told.broker != broker:
            return None
        self._count(self._told.pop(number), -1)
        return told

    def forget(self, broker: str) -> None:
        """The broker is not going to answer."""
        gone = [number for number, told in self._told.items() if told.broker == broker]
        for number in gone:
            self._count(self._told.pop(number), -1)

    def again(self, at_s: float, told: Told) -> None:
        """It is to be told again, at a time that is not before those of all others."""
        self._again.append((at_s, told))
        self._count(told, 1)

    def due(self, now_s: float) -> Iterator[Told]:
        """One by one: those that follow are awaited while this one is told."""
        while self._again and self._again[0][0] <= now_s:
            told = self._again.popleft()[1]
            self._count(told, -1)
            yield told

    def awaits(self, told: Told) -> bool:
        """Whether the broker has yet to say that it did this."""
        return told in self._awaited

    def _count(self, told: Told, by: int) -> None:
        self._awaited[told] += by
        if not self._awaited[told]:
            del self._awaited[told]
