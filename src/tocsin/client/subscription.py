"""A subscription as its application holds it: an iterator of notifications and gaps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Self

from tocsin.errors import TocsinError
from tocsin.protocol.inbox import Item
from tocsin.protocol.messages import Standing
from tocsin.protocol.targets import Target

if TYPE_CHECKING:
    from tocsin.client.session import Session


class Subscription:
    """``await`` it to know that it stands; iterate over it for its items, in order.

    It ends when it is unsubscribed or its session closes, and raises when a broker ended either.
    """

    def __init__(self, session: Session, subscription: str, target: Target, take: Callable[[str], Item | None]) -> None:
        self.id, self.target = subscription, target
        self.standing: Standing | None = None
        self._session, self._take = session, take
        self._changed = asyncio.Event()
        self._error: TocsinError | None = None
        self._is_over = False

    def __await__(self) -> Generator[Any, None, Self]:
        return self._stood().__await__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        while True:
            item = self._take(self.id)
            if item is not None:
                return item
            if self._error:
                raise self._error
            if self._is_over:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()

    async def unsubscribe(self) -> None:
        """End it, here and at the broker."""
        await self._session.unsubscribe(self.id)

    async def _stood(self) -> Self:
        while self.standing is None:
            if self._error:
                raise self._error
            if self._is_over:
                break
            self._changed.clear()
            await self._changed.wait()
        return self

    def wake(self) -> None:
        self._changed.set()

    def stood(self, standing: Standing) -> None:
        self.standing = standing
        self._changed.set()

    def stop(self, error: TocsinError | None = None, rest: deque[Item] | None = None) -> None:
        """It is over once what waits was taken: ``rest``, where the session has given it up."""
        self._error, self._is_over = error, True
        if rest is not None:
            self._take = lambda _: rest.popleft() if rest else None
        self._changed.set()
