"""The way out to one connection: straight to its socket, or into an outbox while its peer reads slowly.

What the system does not take at once waits in the outbox, which sheds, and goes out by ``write_buffer`` bytes. So
what a slow connection costs is bounded, and nobody else waits for it. A peer has subscribers behind it that may be
quick, so nothing of its outbox is shed: where it is full, the peer comes back and resumes.

A connection that is over is closed when its peer has read what was written, or cut after ``login_timeout``: a peer that
does not read would stay for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tocsin.broker import entries as made
from tocsin.broker.entries import Entry
from tocsin.broker.outbox import Outbox
from tocsin.protocol.codes import SLOW, Code
from tocsin.protocol.messages import FromBroker
from tocsin.protocol.targets import Target

if TYPE_CHECKING:
    from tocsin.broker.core import Core
    from tocsin.broker.session import Session


class Outlet(asyncio.Protocol):
    """What WebSocket connections and event streams share. ``is_over`` once nothing more is sent."""

    __slots__ = ("_closes_at", "_is_paused", "_outbox", "_waiters", "core", "is_over", "session", "transport", "turn")

    transport: asyncio.Transport
    session: Session

    def __init__(self, core: Core) -> None:
        self.core = core
        self.is_over = False
        self.turn: int | None = None
        self._closes_at: float | None = None
        self._is_paused = False
        self._outbox: Outbox | None = None
        self._waiters: list[asyncio.Future[None]] | None = None

    # --- what a kind of connection says for itself --------------------------------------------------------

    def encode(self, entries: Iterable[Entry]) -> bytes:
        """Entries as they go on the wire."""
        raise NotImplementedError

    def say(self, message: FromBroker) -> None:
        """Send an answer or an event that is nobody else's. Never shed."""
        raise NotImplementedError

    def end(self, code: Code) -> None:
        """Say why, then close."""
        raise NotImplementedError

    def trust(self) -> None:
        """The peer is a broker, which forwards messages that were held to our limits already."""

    @property
    def is_behind(self) -> bool:
        """Whether something was read from the peer that nobody has looked at."""
        return False

    def hold(self, is_held: bool) -> None:
        """Read nothing more from the peer while it ``is_held``."""

    def check_room(self, targets: Iterable[Target]) -> None:
        """LimitExceeded where this kind of connection cannot follow so much."""

    def note_taken(self) -> None:
        """Acknowledge what counts as taken though the client does not say so."""

    def due(self, now: float) -> float | None:
        """Look at the connection; when to look again, or None when it is closed."""
        raise NotImplementedError

    def _over(self) -> None:
        """Nothing more is sent."""
        raise NotImplementedError

    # --- the end ------------------------------------------------------------------------------------------

    def eof_received(self) -> None:
        """The peer has said its last; its transport closes when it has read what was written."""
        self._finish()

    def _finish(self) -> None:
        self._over()
        if self._closes_at is None:
            self._closes_at = self.core.now() + self.core.settings.login_timeout
            self.core.wheel.add(self, self._closes_at)

    def _finished(self, now: float) -> float | None:
        """What is ``due`` of a connection that is over."""
        if self._closes_at is not None and now >= self._closes_at:
            self.transport.abort()
            return None
        return self._closes_at

    # --- the way out --------------------------------------------------------------------------------------

    @property
    def descriptor(self) -> int | None:
        return None

    def rest(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    @property
    def is_ready(self) -> bool:
        return self._outbox is None

    def push(self, entries: Sequence[Entry]) -> None:
        """Send, or keep as long as there is room."""
        if self.is_over:
            return
        if self._outbox is None:
            self._write(self.encode(entries))
            return
        self.core.meters.shed += self._outbox.push(entries)
        if self._outbox.is_over:
            self.end(SLOW)

    async def writable(self) -> None:
        while self._outbox is not None:
            future = asyncio.get_running_loop().create_future()
            self._waiters = [*(self._waiters or ()), future]
            await future

    def pause_writing(self) -> None:
        self._is_paused = True
        if self._outbox is None:
            core = self.core
            self._outbox = Outbox(core.peer_outbox_limits if self.session.is_peer else core.outbox_limits)
            self.session.resort()

    def resume_writing(self) -> None:
        self._is_paused = False
        while self._outbox and not self._is_paused and not self.is_over:
            self._write(self.encode(self._outbox.take()))
        if not self._is_paused:
            self._outbox = None
            self.session.resort()
            self._wake()

    def _control(self, frame: bytes) -> None:
        self.push([made.control(frame)])

    def _write(self, data: bytes) -> None:
        self.transport.write(data)
        self.core.hub.sent(len(data))

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, None
        for future in waiters or ():
            if not future.done():
                future.set_result(None)
