"""Ends that come from outside."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_ENDS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end what runs in order, as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until_signalled(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main``. SIGTERM and a closed terminal cancel it alone, as Ctrl-C does: it can end what it began.

    An exception from a handler would cancel every task at once, those that it needs for that among them. Once is
    enough: a further signal would interrupt the ending.
    """
    ended: list[int] = []

    async def whole() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            if not ended:
                task.cancel()
            ended.append(number)

        for number in _ENDS:
            loop.add_signal_handler(number, end, number)
        return await main

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        if not ended:
            raise
        sys.exit(128 + ended[0])
