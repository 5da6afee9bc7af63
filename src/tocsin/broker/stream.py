"""One stream: where it stands, who follows it live, and what of it goes out at the next tick.

Rules kept here:

* ``position`` is that of the last entry taken in, though the entry may still wait for the tick.
* Who joins does so after what waits has gone out, so nobody gets an entry at or before where it stands.
* A follower is in exactly one of ``fast``, ``slow`` and ``joining``. The fast ones are kept as their sockets'
  descriptors: a delivery to one of them makes no object.
* A fast follower has nothing that waits elsewhere, or a frame written straight to its socket would overtake it.
* Who is ``joining`` stands elsewhere than the stream: past it (it comes from a broker that was ahead), or before
  it with nothing between. Its first entry is made for it; then it is fast or slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tocsin.broker.cache import Recent
from tocsin.broker.entries import Entry, from_position
from tocsin.broker.metering import MovingRate
from tocsin.broker.sockets import Left, write_each, write_same
from tocsin.protocol.targets import Target


class Outlet(Protocol):
    """A connection, as a stream sees it."""

    @property
    def descriptor(self) -> int | None:
        """Its socket, which takes frames as they are, as long as it is not None."""
        ...

    def rest(self, data: bytes) -> None:
        """Send what its socket did not take."""
        ...

    def push(self, entries: Sequence[Entry]) -> None: ...


class Stream:
    __slots__ = ("fast", "holders", "joining", "name", "position", "rate", "recent", "reported_rate", "slow", "waiting")

    def __init__(self, name: str, position: str, rate: MovingRate) -> None:
        self.name, self.position, self.rate = name, position, rate
        self.reported_rate = 0.0
        self.recent = Recent()
        self.holders: dict[str, Holders] = {}  # by the target's key: several targets may name one stream
        self.fast: dict[Outlet, int] = {}
        self.slow: set[Outlet] = set()
        self.joining: dict[Outlet, str] = {}
        self.waiting: list[Entry] = []

    @property
    def followers(self) -> int:
        return len(self.fast) + len(self.slow) + len(self.joining)

    def append(self, entries: Sequence[Entry]) -> None:
        """The next entries, to go out with the next ``flush``."""
        self.position = entries[-1].through
        self.waiting.extend(entries)

    def take(self) -> Batch:
        """What waits, from now on the caller's to send to those who follow now."""
        entries, self.waiting = self.waiting, []
        return Batch(self, entries, b"".join([e.frame for e in entries]), list(self.slow))

    def join(self, outlet: Outlet, position: str) -> int:
        """Follow from ``position``, between which and here there is nothing. What waited goes out, as in ``flush``."""
        sent = flush([self])
        if position == self.position:
            self.resort(outlet)
        else:
            self.joining[outlet] = position
        return sent

    def leave(self, outlet: Outlet) -> None:
        self.fast.pop(outlet, None)
        self.slow.discard(outlet)
        self.joining.pop(outlet, None)

    def resort(self, outlet: Outlet) -> None:
        """Put a live follower where it belongs now: it became slow, or fast again."""
        if outlet in self.joining:
            return
        descriptor = outlet.descriptor
        if descriptor is None:
            self.fast.pop(outlet, None)
            self.slow.add(outlet)
        else:
            self.slow.discard(outlet)
            self.fast[outlet] = descriptor

    def standing(self, outlet: Outlet) -> str:
        """Where a live follower stands."""
        return self.joining.get(outlet, self.position)

    def let_in(self, entries: Sequence[Entry]) -> None:
        """Send their first entries to those who are joining."""
        for outlet, position in list(self.joining.items()):
            due = [e for e in entries if e.through > position]
            if due and outlet in self.joining:
                del self.joining[outlet]
                self.resort(outlet)
                outlet.push([from_position(due[0], position), *due[1:]])


@dataclass(frozen=True, slots=True)
class Batch:
    """``data`` is what the fast ones get; ``slow`` is who was slow before it was sent."""

    stream: Stream
    entries: Sequence[Entry]
    data: bytes
    slow: Sequence[Outlet]

    def hand_on(self) -> None:
        """Send to all but the fast ones."""
        for outlet in self.slow:
            outlet.push(self.entries)
        if self.stream.joining:
            self.stream.let_in(self.entries)


def flush(streams: Iterable[Stream]) -> int:
    """Send what waits, in one write a fast follower of any of them; returns the bytes given to those."""
    batches = [stream.take() for stream in streams if stream.waiting]
    given = sum([len(batch.data) * len(batch.stream.fast) for batch in batches])
    if len(batches) == 1:
        left = write_same(batches[0].data, batches[0].stream.fast.values())
    else:
        left = write_each(_joined(batches))
    if left:
        _give_back(batches, left)
    for batch in batches:
        batch.hand_on()
    return given


def _joined(batches: Iterable[Batch]) -> dict[int, list[bytes]]:
    """What each socket gets of all batches."""
    parts: dict[int, list[bytes]] = {}
    for batch in batches:
        for descriptor in batch.stream.fast.values():
            parts.setdefault(descriptor, []).append(batch.data)
    return parts


def _give_back(batches: Iterable[Batch], left: Left) -> None:
    """Sockets that did not take all are their connections' to wait for, which slows these down."""
    outlets = {descriptor: outlet for batch in batches for outlet, descriptor in batch.stream.fast.items()}
    for descriptor, data in left:
        outlets[descriptor].rest(data)


class Holders:
    """Who holds a stream by one target: the target is attached as long as someone does."""

    __slots__ = ("count", "target")

    def __init__(self, target: Target) -> None:
        self.target, self.count = target, 0
