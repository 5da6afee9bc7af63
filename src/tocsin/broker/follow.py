"""One session's way along one stream: first what it missed, then live, without a hole or an echo.

::

    behind --(cache or replay has brought it to the stream's position)--> live
    live   --(the session or the subscription ends)--> over

``sent`` is where the client stands; ``cursor`` is how far we know that it lacks nothing. While behind, nothing
live is queued: the past is fetched page by page as fast as the client reads, and the step that finds the
cursor at the stream's position joins it there, with no other step between. Nothing at or before ``sent`` is
ever sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from tocsin.broker import entries
from tocsin.broker.entries import Entry, from_position
from tocsin.broker.hub import Hub
from tocsin.broker.ports import Page
from tocsin.broker.stream import Outlet, Stream
from tocsin.errors import BadArgument, NotFound, Refused, TocsinError
from tocsin.protocol.messages import Gap, Hole

Replay = Callable[[Stream, str], Awaitable[Page]]
"""The stream's past after a position, up to where it stands now."""


log = logging.getLogger(__name__)
_UNFINISHED_S = 0.1  # until a page is asked for again that brought nothing, doubled each time


class PacedOutlet(Outlet, Protocol):
    @property
    def is_ready(self) -> bool:
        """Whether nothing waits."""
        ...

    async def writable(self) -> None:
        """Returns when everything that waited has been taken, at once where nothing waits."""
        ...


class Follow:
    __slots__ = ("_hub", "_is_live", "_outlet", "_task", "cursor", "sent", "stream")

    def __init__(self, hub: Hub, stream: Stream, outlet: PacedOutlet, position: str) -> None:
        self._hub, self.stream, self._outlet = hub, stream, outlet
        self.sent = self.cursor = position
        self._is_live = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_behind(self) -> bool:
        return self.cursor < self.stream.position

    @property
    def is_ahead(self) -> bool:
        """Whether the client stands where the stream has not come to here."""
        return self.cursor > self.stream.position

    @property
    def position(self) -> str:
        return self.stream.standing(self._outlet) if self._is_live else self.sent

    @property
    def needs_page(self) -> bool:
        """Whether the way to live begins with a read of the stream's past."""
        return self.is_behind and self.stream.recent.since(self.cursor, 1) is None

    def skip(self, page: Page) -> bool:
        """Whether ``page``, the first, says that there is nothing in its span: then the client stands after it."""
        if page.items or page.gap:
            return False
        self.sent = self.cursor = max(self.cursor, page.through)
        return True

    def turn_back(self) -> None:
        """The client stands where its stream never was: it goes on from here once this is started again."""
        self.stop()
        self.sent = self.cursor = self.stream.position

    def start(self, replay: Replay, first: Page | None, retry_s: float) -> None:
        """Send what ``first`` has, then the rest, then live."""
        if first is not None or not self._advance():
            self._task = asyncio.get_running_loop().create_task(self._catch_up(replay, first, retry_s))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._is_live = False
        self.stream.leave(self._outlet)

    def resort(self) -> None:
        """The way out became slow, or fast again."""
        if self._is_live:
            self.stream.resort(self._outlet)

    async def _catch_up(self, replay: Replay, page: Page | None, retry_s: float) -> None:
        pause_s = _UNFINISHED_S
        while True:
            if page is not None:
                await self._take(page)
            await self._outlet.writable()
            if self._advance():
                self._task = None
                return
            page = await self.page(replay) if self._outlet.is_ready else None
            if page is None:
                await asyncio.sleep(retry_s if self._outlet.is_ready else 0)
            elif page.through <= self.cursor and not page.items:  # it ends where an execution runs
                await asyncio.sleep(min(retry_s, pause_s))
                pause_s *= 2

    async def page(self, replay: Replay) -> Page | None:
        """The next page of the past; None where it could not be had now."""
        through = self.stream.position
        try:
            return await replay(self.stream, self.cursor)
        except (NotFound, BadArgument, Refused):  # the past is not to be had, now or later
            return Page((), through, True, Gap(self.stream.name, [Hole(self.cursor, through, None)], "lost"))
        except Exception as error:
            log.log(_level(error), "replay of %s after %s failed: %s", self.stream.name, self.cursor, error)
            return None

    def _advance(self) -> bool:
        """On without asking anybody: true when live, false when the past must be fetched or the client must read."""
        while self.is_behind:
            found = self.stream.recent.since(self.cursor, self._hub.chunk_bytes) if self._outlet.is_ready else None
            if not found:
                return False
            self._push(found)
        self._is_live = True
        self._hub.sent(self.stream.join(self._outlet, self.sent))
        return True

    async def _take(self, page: Page) -> None:
        """Send a page of the past, in pieces that the client reads one after the other."""
        piece: list[Entry] = []
        for entry in self._entries(page):
            piece.append(entry)
            if sum([len(e.frame) for e in piece]) >= self._hub.chunk_bytes:
                await self._outlet.writable()
                self._push(piece)
                piece = []
        await self._outlet.writable()
        self._push(piece)
        self.cursor = max(self.cursor, page.through)

    def _entries(self, page: Page) -> Iterator[Entry]:
        """Items and holes in their order, each from where the one before it ended."""
        name, at = self.stream.name, self.sent
        reason = page.gap.reason if page.gap else ""
        parts: list[tuple[str, Hole | bytes]] = [(h.through, h) for h in page.gap.holes] if page.gap else []
        parts.extend(page.items)
        for through, part in sorted(parts, key=lambda p: p[0]):
            if through <= at:
                continue
            if isinstance(part, Hole):
                yield entries.gap(name, at, [Hole(at, through, part.count)], reason)
            else:
                yield entries.notification(name, at, through, part)
            at = through

    def _push(self, found: Sequence[Entry]) -> None:
        if found:
            self._outlet.push([from_position(found[0], self.sent), *found[1:]])
            self.sent = found[-1].through
            self.cursor = max(self.cursor, self.sent)


def _level(error: Exception) -> int:
    return logging.WARNING if isinstance(error, TocsinError) else logging.ERROR
