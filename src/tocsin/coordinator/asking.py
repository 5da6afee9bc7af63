"""Trying whether anyone listens at the address of a broker that fell silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit


class Asking:
    """One try a broker at a time; ``on_refused`` hears of an address where nobody listens."""

    def __init__(self, timeout_s: float, on_refused: Callable[[str], Awaitable[None]]) -> None:
        self._timeout_s, self._on_refused = timeout_s, on_refused
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, broker: str, url: str) -> None:
        if broker not in self._tasks:
            self._tasks[broker] = asyncio.create_task(self._ask(broker, url))

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, broker: str, url: str) -> None:
        try:
            if await is_refused(url, self._timeout_s):
                await self._on_refused(broker)
        finally:
            del self._tasks[broker]


async def is_refused(url: str, timeout_s: float) -> bool:
    """Whether nobody listens at ``url``; no where that cannot be said."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), timeout_s)
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError, TimeoutError):
        return False
    writer.close()
    return False
