"""The client without asyncio: a session whose loop runs in a thread of its own.

with connect(broker="http://127.0.0.1:8430", token=token) as session:
    for item in session.subscribe(channel("Near", kind="fire", x=0, y=0, radius=500)):
        print(item)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from tocsin import client
from tocsin.errors import SessionEnded
from tocsin.protocol.inbox import Item
from tocsin.protocol.messages import Standing
from tocsin.protocol.targets import Target

T = TypeVar("T")


class Subscription:
    """Iterate over it; or take one item at a time with ``next``."""

    def __init__(self, session: Session, inner: client.Subscription) -> None:
        self._session, self._inner = session, inner
        self.id = inner.id

    def __iter__(self) -> Iterator[Item]:
        while (item := self.next()) is not None:
            yield item

    def next(self, timeout_s: float | None = None) -> Item | None:
        """The next item; None where the subscription has ended. TimeoutError where none came in time."""
        return self._session.run(self._next(timeout_s))

    def unsubscribe(self) -> None:
        self._session.run(self._inner.unsubscribe())

    async def _next(self, timeout_s: float | None) -> Item | None:
        async with asyncio.timeout(timeout_s):
            return await anext(self._inner, None)


class Session:
    """What ``tocsin.client.Session`` is, one call at a time."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inner: client.Session | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tocsin-client", daemon=True)
        self._thread.start()
        try:
            self._inner = self.run(self._open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._loop is None:
            return
        try:
            self.run(self._session.close())
        finally:
            self._stop()

    def subscribe(self, target: Target, *, id: str | None = None, position: str | None = None) -> Subscription:
        """As ``tocsin.client``'s, and it stands when this returns."""
        return Subscription(self, self.run(self._subscribe(target, id, position)))

    def topic(self, name: str, *, id: str | None = None, position: str | None = None) -> Subscription:
        return self.subscribe(client.topic(name), id=id, position=position)

    def publish(self, topic: str, payload: Any) -> str:
        return self.run(self._session.publish(topic, payload))

    def records(self, dataset: str, records: Iterable[Any]) -> tuple[int, int]:
        return self.run(self._session.records(dataset, records))

    def held(self) -> list[Standing]:
        return self.run(self._session.held())

    def refresh(self, token: str) -> None:
        self.run(self._session.refresh(token))

    @property
    def user(self) -> str | None:
        return self._session.user

    @property
    def broker(self) -> str:
        return self._session.broker

    @property
    def positions(self) -> dict[str, str]:
        return self.run(self._positions())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something that happens in the session's thread."""
        if self._loop is None:
            work.close()
            raise SessionEnded(1000, "the session is not open")
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    @property
    def _session(self) -> client.Session:
        if self._inner is None:
            raise SessionEnded(1000, "the session is not open")
        return self._inner

    async def _open(self) -> client.Session:
        return await client.connect(**self._options).__aenter__()

    async def _subscribe(self, target: Target, id: str | None, position: str | None) -> client.Subscription:
        return await self._session.subscribe(target, id=id, position=position)

    async def _positions(self) -> dict[str, str]:
        return self._session.positions

    def _stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = None


def connect(**options: Any) -> Session:
    """As ``tocsin.client.connect``, to be entered with ``with``."""
    return Session(options)
