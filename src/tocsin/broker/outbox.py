"""What waits for a connection whose peer reads slowly. It exists only while something waits.

Above ``soft_bytes`` the policy sheds down to three quarters of it, so that the cost of choosing is spread
over many entries. What was shed is counted until the outbox is empty again; together with what waits it may
reach ``hard_bytes``, and then the connection is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tocsin.broker.entries import Entry
from tocsin.broker.shedding import OldestFirst, Shedding, without

HOLE_BYTES = 160  # about what a gap takes on the wire


@dataclass(frozen=True, slots=True)
class OutboxLimits:
    soft_bytes: int = 256_000
    hard_bytes: int = 4_000_000
    chunk_bytes: int = 64_000
    shedding: Shedding = field(default_factory=OldestFirst)


class Outbox:
    __slots__ = ("_limits", "_waiting", "shed_bytes", "waiting_bytes")

    def __init__(self, limits: OutboxLimits) -> None:
        self._limits = limits
        self._waiting: list[Entry] = []
        self.waiting_bytes = 0
        self.shed_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_over(self) -> bool:
        return self.waiting_bytes + self.shed_bytes > self._limits.hard_bytes

    def push(self, entries: Iterable[Entry]) -> int:
        """Add; returns how many notifications were shed for it. Where it is over, nothing more is worth choosing."""
        for entry in entries:
            self._waiting.append(entry)
            self.waiting_bytes += _size(entry)
        return self._shed() if self.waiting_bytes > self._limits.soft_bytes and not self.is_over else 0

    def take(self) -> Iterator[Entry]:
        """Remove and give the first entries, about ``chunk_bytes`` of them and at least one."""
        taken = end = 0
        while end < len(self._waiting) and (taken < self._limits.chunk_bytes or end == 0):
            taken += _size(self._waiting[end])
            end += 1
        first, self._waiting = self._waiting[:end], self._waiting[end:]
        self.waiting_bytes -= taken
        return iter(first)

    def _shed(self) -> int:
        excess = self.waiting_bytes - self._limits.soft_bytes * 3 // 4
        dropped = self._limits.shedding.choose(self._waiting, excess)
        self.shed_bytes += sum(len(self._waiting[i].frame) for i in dropped)
        count = sum(self._waiting[i].count or 1 for i in dropped)
        self._waiting = without(self._waiting, dropped)
        self.waiting_bytes = sum(map(_size, self._waiting))
        return count


def _size(entry: Entry) -> int:
    return len(entry.frame) or HOLE_BYTES
