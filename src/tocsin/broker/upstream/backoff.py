"""How long to wait before trying again: twice as long each time, any part of it, so that many do not come at once."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass

_RANDOM = random.Random()  # making one costs more than a publication's stamp


@dataclass(slots=True)
class Backoff:
    """Full jitter between ``least_s`` and a bound that doubles up to ``most_s``."""

    least_s: float
    most_s: float
    rng: random.Random = _RANDOM
    _failures: int = 0

    def next_s(self) -> float:
        """The next pause."""
        bound = min(self.most_s, self.least_s * 2 ** min(self._failures, 30))
        self._failures += 1
        return self.rng.uniform(min(self.least_s, bound), bound)

    def succeeded(self) -> None:
        self._failures = 0

    async def pause(self, wake: asyncio.Event | None = None) -> None:
        """Wait; ``wake`` ends it early."""
        seconds = self.next_s()
        if wake is None:
            await asyncio.sleep(seconds)
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await wake.wait()
