"""A topic's log at its owner: stamps, a bounded history, and what one who comes back has missed.

Rules kept here:

* Positions are ``{epoch:012x}-{offset:012x}`` and compare as strings. Offsets count from 1 within an epoch;
  offset 0 is where an epoch begins.
* An epoch is the millisecond in which an owner began without the state of the one before it, and always
  above every epoch that it has heard of. Within an epoch nothing is unknown to the owner: what the history no
  longer has is a gap with its exact count (``retention``).
* Whoever stands in an older epoch has a gap of unknown size up to the beginning of this one (``owner``).
* A log that was handed over is not appended to any more. Whoever took it goes on in the same epoch.
* The owner of a topic is the live broker with the highest hash of topic and name (rendezvous), so one that
  joins or leaves moves only the topics that it gets or had.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from tocsin.broker.ports import Item
from tocsin.errors import BadArgument
from tocsin.protocol.messages import Hole

_FORM = re.compile(r"([0-9a-f]{12})-([0-9a-f]{12})")
_MAX_EPOCH = 2**47  # milliseconds: some 4,000 years


@dataclass(frozen=True, slots=True, order=True)
class Stamp:
    epoch: int
    offset: int

    def __str__(self) -> str:
        return f"{self.epoch:012x}-{self.offset:012x}"

    @staticmethod
    def parse(text: str) -> Stamp:
        found = _FORM.fullmatch(text)
        if not found:
            raise BadArgument("position", "a position of this topic", text)
        return Stamp(int(found[1], 16), int(found[2], 16))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a topic is kept."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Missed:
    """What lies after a position: first a hole, if there is one, then everything that is kept."""

    hole: Hole | None
    reason: str
    items: Sequence[Item]


class Log:
    """``position`` is that of the last publication, or the beginning of the epoch."""

    def __init__(self, bounds: Bounds, epoch: int, offset: int = 0, history: Iterable[bytes] = ()) -> None:
        self._bounds = bounds
        self.epoch, self.offset = epoch, offset
        self._history: deque[bytes] = deque()
        self._bytes = 0
        for payload in history:
            self._keep(payload)
        self.check_invariants()

    @property
    def position(self) -> str:
        return str(Stamp(self.epoch, self.offset))

    @property
    def history(self) -> Sequence[bytes]:
        """The payloads that are kept, the newest last; its offset is ``offset``."""
        return tuple(self._history)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def append(self, payload: bytes) -> str:
        """Stamp a publication; its position."""
        self.offset += 1
        self._keep(payload)
        return self.position

    def since(self, position: str) -> Missed:
        """What one who stands at ``position`` has missed; BadArgument for a position that is not behind this log."""
        mine, theirs = Stamp(self.epoch, self.offset), Stamp.parse(position)
        if theirs > mine:
            raise BadArgument("position", f"one at or before {mine}", position)
        oldest = self.offset - len(self._history)  # everything after this offset is kept
        if theirs.epoch == self.epoch and theirs.offset >= oldest:
            return Missed(None, "", self._items(theirs.offset))
        edge = Stamp(self.epoch, oldest)
        if theirs.epoch < self.epoch:
            return Missed(Hole(position, str(edge), None), "owner", self._items(oldest))
        return Missed(Hole(position, str(edge), oldest - theirs.offset), "retention", self._items(oldest))

    def check_invariants(self) -> None:
        """What holds between any two calls."""
        assert 0 <= self.epoch < _MAX_EPOCH, self.epoch
        assert len(self._history) <= self.offset, (len(self._history), self.offset)
        assert self._bytes == sum(map(len, self._history))
        assert len(self._history) <= self._bounds.messages
        assert self._bytes <= self._bounds.bytes

    def _keep(self, payload: bytes) -> None:
        self._history.append(payload)
        self._bytes += len(payload)
        while len(self._history) > self._bounds.messages or self._bytes > self._bounds.bytes:
            self._bytes -= len(self._history.popleft())

    def _items(self, after: int) -> list[Item]:
        first = self.offset - len(self._history)
        kept = list(self._history)[after - first :]
        return [(str(Stamp(self.epoch, after + i)), payload) for i, payload in enumerate(kept, 1)]


def new_epoch(now_ms: int, seen: Iterable[str | None] = ()) -> int:
    """The epoch of an owner that begins without a log, above all positions that it has heard of."""
    heard = [Stamp.parse(position).epoch for position in seen if position is not None]
    return max([now_ms, *(epoch + 1 for epoch in heard)])


def ranked(topic: str, brokers: Iterable[str]) -> list[str]:
    """Brokers by their claim to ``topic``, the owner first."""
    return sorted(brokers, key=lambda name: (_weight(topic, name), name), reverse=True)


def owner_of(topic: str, brokers: Iterable[str]) -> str | None:
    """Who stamps ``topic``; None where no broker lives."""
    return max(brokers, key=lambda name: (_weight(topic, name), name), default=None)


def _weight(topic: str, broker: str) -> bytes:
    return blake2b(f"{topic}\n{broker}".encode(), digest_size=8).digest()
