"""A data cluster as a broker's client of it sees one: slow, sometimes cut off, with executions that take their time.

A subscription counts from the execution after the one that has begun. A request may be lost on its way there, or its
answer on the way back; one that was sent takes effect though whoever asked has gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random

from msgspec import Raw

from tocsin.broker.upstream.cluster import Arguments, ClusterClient, Made, Result, ResultPage, Span, Stood
from tocsin.errors import TocsinError, Unavailable
from tocsin.model.position import Position


class SlowCluster(ClusterClient):
    """``kinds`` are the arguments that results are made for; ``losses`` is the part of the messages that get lost."""

    def __init__(self, random: Random, kinds: Sequence[str], losses: float) -> None:
        self._random, self.losses = random, losses
        self._backends = {kind: number for number, kind in enumerate(kinds, 1)}
        self._since: dict[str, tuple[int, int]] = {}  # by id: backend, first execution that counts
        self._makings: dict[str, int] = {}
        self._started = self._head = 0
        self._results: list[tuple[Position, list[int]]] = []
        self._news = asyncio.Condition()
        self._late: set[asyncio.Task[None]] = set()

    def results(self, backend: int, after: str) -> list[str]:
        return [str(at) for at, backends in self._results if backend in backends and str(at) > after]

    async def execute(self) -> None:
        """One after the other, for ever."""
        while True:
            await asyncio.sleep(self._random.random() * 0.4)
            self._started += 1
            await asyncio.sleep(self._random.random() * 0.6)
            for row in range(1, self._random.randrange(1, 6)):
                count = self._random.randint(1, len(self._backends))
                matched = sorted(self._random.sample(sorted(self._backends.values()), count))
                self._results.append((Position(self._started, row), matched))
            async with self._news:
                self._head = self._started
                self._news.notify_all()

    async def register(self, broker: str, notify_url: str) -> None:
        await self._travel()

    async def acknowledged(self, broker: str) -> dict[str, str]:
        return {}

    async def acknowledge(self, broker: str, positions: Mapping[str, str]) -> None:
        await self._travel()

    async def subscriptions(self, broker: str) -> list[Stood]:
        return [Stood(id, broker, self._makings[id]) for id in self._since]

    async def subscribe(
        self, broker: str, channel: str, wanted: Sequence[tuple[str, Arguments]], making: int
    ) -> list[Made]:
        await self._travel()
        for id, _ in wanted:
            self._makings[id] = max(making, self._makings.get(id, 0))
        made = [self._made(channel, id, self._backends[arguments[0]]) for id, arguments in wanted]  # type: ignore[index]
        await self._travel()
        return made

    async def unsubscribe(self, ids: Sequence[str], making: int) -> None:
        """One that is given up waiting for may still arrive, much later."""
        if self._random.random() < self.losses:
            self._late.add(asyncio.create_task(self._remove_late(ids, making)))
            raise Unavailable("a removal takes its time")
        await self._travel()
        self._remove(ids, making)
        await self._travel()

    async def _remove_late(self, ids: Sequence[str], making: int) -> None:
        await asyncio.sleep(self._random.random() * 2.0)
        self._remove(ids, making)

    def _remove(self, ids: Sequence[str], making: int) -> None:
        for id in ids:
            if self._makings.get(id, 0) <= making:
                self._since.pop(id, None)

    async def pull(self, broker: str, cursors: Mapping[str, str], max_rows: int, wait_s: float) -> list[ResultPage]:
        await self._travel()
        [(channel, cursor)] = cursors.items()
        page = self._page(channel, cursor, self._is_held, max_rows)
        if not page.results:
            async with self._news:
                await self._news.wait()
            page = self._page(channel, cursor, self._is_held, max_rows)
        await self._travel()
        return [page]

    async def replay(self, spans: Sequence[Span], limit: int) -> list[ResultPage | TocsinError]:
        """Answers for the first of them, as many as it has room for."""
        await self._travel()
        answered = spans[: self._random.randint(1, len(spans))]
        pages: list[ResultPage | TocsinError] = [self._replayed(span, limit) for span in answered]
        await self._travel()
        return pages

    def _replayed(self, span: Span, limit: int) -> ResultPage:
        return self._page(span.channel, span.after, lambda one, _: one == span.backend, limit, span.through)

    def _made(self, channel: str, id: str, backend: int) -> Made:
        _, since = self._since.setdefault(id, (backend, self._started + 1))
        return Made(id, channel, backend, str(Position.end_of(since - 1)))

    def _is_held(self, backend: int, execution: int) -> bool:
        return any(backend == one and since <= execution for one, since in self._since.values())

    def _page(
        self, channel: str, after: str, is_wanted: Callable[[int, int], bool], limit: int, through: str = "g"
    ) -> ResultPage:
        last = min(str(Position.end_of(self._head)), through)
        found = [
            Result(str(at), wanted, Raw(b"1"))
            for at, backends in self._results
            if after < str(at) <= last and (wanted := [one for one in backends if is_wanted(one, at.execution)])
        ]
        is_end, found = len(found) <= limit, found[:limit]
        return ResultPage(channel, after, max(after, last) if is_end else found[-1].position, is_end, None, found)

    async def _travel(self) -> None:
        await asyncio.sleep(self._random.choice((0.001, 0.02, 0.1, 0.5)) * self._random.random())
        if self._random.random() < self.losses:
            raise Unavailable("a message got lost")
