"""One at a time for each key, in the order of their coming. What nobody uses is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Gate:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Gates(Generic[K]):
    def __init__(self) -> None:
        self._gates: dict[K, _Gate] = {}

    async def idle(self, key: K) -> None:
        """Returns when nobody is there who was when this was asked."""
        if key in self._gates:
            async with self.passed(key):
                return

    @asynccontextmanager
    async def passed(self, key: K) -> AsyncIterator[None]:
        gate = self._gates.setdefault(key, _Gate())
        gate.users += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.users -= 1
            if not gate.users:
                del self._gates[key]
