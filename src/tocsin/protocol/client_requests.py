"""What a client's session has asked and is going to ask: numbers, answers, and what waits for a link."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tocsin.errors import BadArgument, LimitExceeded, Uncertain
from tocsin.protocol import client_actions as do
from tocsin.protocol import messages
from tocsin.protocol.client_actions import Action
from tocsin.protocol.client_link import Asked, Link
from tocsin.protocol.codec import encoded

Make = Callable[[int], messages.FromClient]
_LONGEST_NUMBER = 10**12
_AROUND = len(':"",')  # bytes of a position in an acknowledgement, beside its stream and itself


class Requests:
    """``out`` takes the actions; no more than ``most`` requests of the application are under way."""

    def __init__(self, out: list[Action], most: int) -> None:
        self._out, self._most = out, most
        self._waiting: deque[tuple[Any, Make]] = deque()  # that no link has taken yet
        self._numbers = 0
        self.max_bytes: int | None = None  # of a message, as the last broker told; a longer one would end the session

    def enqueue(self, key: Any, make: Make, link: Link | None) -> None:
        """Ask on ``link``, or as soon as there is one; LimitExceeded where too many wait, or it is too long."""
        if len(self._waiting) + (len(link.asked) if link else 0) >= self._most:
            raise LimitExceeded("requests under way", self._most)
        self.check_size(make)
        self._waiting.append((key, make))
        if link is not None:
            self.send_waiting(link)

    def check_size(self, make: Make) -> None:
        room = self.room(make)
        if room is not None and room < 0:
            assert self.max_bytes is not None
            raise LimitExceeded("bytes of a message", self.max_bytes, self.max_bytes - room)

    def room(self, make: Make) -> int | None:
        """Bytes that a message may still grow by; None where no broker has told how long it may be."""
        return None if self.max_bytes is None else self.max_bytes - len(encoded(make(_LONGEST_NUMBER)))

    def acknowledge(self, link: Link, positions: Mapping[str, str]) -> None:
        """In as many messages as it takes."""
        for part in self._parts(positions):
            self._out.append(do.Send(link.number, messages.Ack(part)))

    def _parts(self, positions: Mapping[str, str]) -> Iterator[dict[str, str]]:
        room = self.room(lambda _: messages.Ack({}))
        part: dict[str, str] = {}
        size = 0
        for stream, position in positions.items():
            more = len(msgspec.json.encode(stream)) + len(position) + _AROUND
            if part and room is not None and size + more > room:
                yield part
                part, size = {}, 0
            part[stream] = position
            size += more
        if part:
            yield part

    def send_waiting(self, link: Link) -> None:
        while self._waiting:
            key, make = self._waiting.popleft()
            self.send(link, Asked("request", key), make)

    def send(self, link: Link, asked: Asked, make: Make) -> None:
        self._numbers += 1
        link.asked[self._numbers] = asked
        self._out.append(do.Send(link.number, make(self._numbers)))

    def answered(self, link: Link, number: int, kind: str | None = None) -> Asked:
        """What was asked under ``number``; BadArgument where nothing was, or something else."""
        asked = link.asked.pop(number, None)
        if asked is None or kind not in (None, asked.kind):
            raise BadArgument("request", f"the number of a {kind or 'request'} that waits for its answer", number)
        return asked

    def lose(self, link: Link) -> None:
        """The link is gone: nobody knows what became of what was asked on it."""
        for asked in link.asked.values():
            if asked.kind == "request" and asked.key is not None:
                self._out.append(do.Fail(asked.key, Uncertain("the request")))
        link.asked.clear()

    def give_up(self) -> list[Any]:
        """Ask nothing more; the application's keys of what waited."""
        keys = [key for key, _ in self._waiting]
        self._waiting.clear()
        return keys
