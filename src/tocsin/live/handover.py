"""Migrations as their subscriber sees them, read off the messages of its session."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tocsin.live.behind import behind_bytes
from tocsin.protocol.codec import from_broker
from tocsin.protocol.messages import Move, Wanted

OPENING = 438  # bytes of the opening of a WebSocket and of its answer, at 127.0.0.1
HEAD, MASK = 4, 4  # bytes before a message of usual length, and more before ours
_LOGIN, _MOVE, _DONE, _NEWS = (b'{"type":"%s"' % kind for kind in (b"login", b"move", b"done", b"notification"))


@dataclass(frozen=True, slots=True)
class Handover:
    """One migration: from the broker's ``move`` to the confirmation that the next one answered.

    ``bytes`` are without notifications, which come with or without it; ``behind_bytes`` is what coordinator and
    brokers told each other for it.
    """

    user: str
    seconds: float
    bytes: int
    behind_bytes: int
    subscriptions: int


class Watch:
    """A session's ``tap``. ``done`` is shared by all; ``wanted`` tells what the session holds."""

    def __init__(self, user: str, wanted: Callable[[], Sequence[Wanted]], done: list[Handover]) -> None:
        self._user, self._wanted, self._done = user, wanted, done
        self._ticket, self._link = b"", -1  # of the move that is under way
        self._began, self._bytes, self._behind = 0.0, 0, 0
        self.logins = 0  # but for those of a move

    def __call__(self, link: int, is_ours: bool, data: bytes) -> None:
        if not is_ours and data.startswith(_MOVE):
            self._begin(data)
        elif is_ours and data.startswith(_LOGIN):
            self._log_in(link, data)
        elif link == self._link and not data.startswith(_NEWS):
            self._add(data, is_ours)
            if not is_ours and data.startswith(_DONE):
                self._end()

    def _begin(self, data: bytes) -> None:
        move, wanted = from_broker(data), self._wanted()
        assert isinstance(move, Move)
        self._ticket, self._link, self._began = move.ticket.encode(), -1, time.perf_counter()
        self._bytes, self._behind = len(data) + HEAD + OPENING, behind_bytes(self._user, move, wanted)

    def _log_in(self, link: int, data: bytes) -> None:
        if self._ticket and self._ticket in data:
            self._ticket, self._link = b"", link
            self._add(data, is_ours=True)
        else:
            self.logins += 1

    def _add(self, data: bytes, is_ours: bool) -> None:
        self._bytes += len(data) + HEAD + is_ours * MASK

    def _end(self) -> None:
        took_s = time.perf_counter() - self._began
        self._done.append(Handover(self._user, took_s, self._bytes, self._behind, len(self._wanted())))
        self._link = -1
