"""One stream: where it stands, who follows it live, and what of it goes out at the next tick.

Rules kept here:

* ``position`` is that of the last entry taken in, though the entry may still wait for the tick.
* Who joins does so after what waits has gone out, so nobody gets an entry at or before where it stands.
* A follower is in exactly one of ``fast``, ``slow`` and ``joining``. The fast ones are kept as the functions
  that write to their sockets: a delivery to one of them makes no object.
* Who is ``joining`` stands elsewhere than the stream: past it (it comes from a broker that was ahead), or before
  it with nothing between. Its first entry is made for it; then it is fast or slow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tocsin.broker.cache import Recent
from tocsin.broker.entries import Entry, from_position
from tocsin.broker.metering import MovingRate
from tocsin.protocol.targets import Target

Write = Callable[[bytes], object]


class Outlet(Protocol):
    """A connection, as a stream sees it."""

    @property
    def fast_write(self) -> Write | None:
        """Takes frames as they are, as long as it is not None."""
        ...

    def push(self, entries: Sequence[Entry]) -> None: ...


class Stream:
    __slots__ = ("fast", "holders", "joining", "name", "position", "rate", "recent", "reported_rate", "slow", "waiting")

    def __init__(self, name: str, position: str, rate: MovingRate) -> None:
        self.name, self.position, self.rate = name, position, rate
        self.reported_rate = 0.0
        self.recent = Recent()
        self.holders: dict[str, Holders] = {}  # by the target's key: several targets may name one stream
        self.fast: dict[Outlet, Write] = {}
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

    def flush(self) -> int:
        """Send what waits, in one write a follower; returns the bytes given to fast ones."""
        entries, self.waiting = self.waiting, []
        if not entries:
            return 0
        data = b"".join([e.frame for e in entries])
        writes = list(self.fast.values())  # a write may slow its connection down, which changes ``fast``
        slow = list(self.slow) if self.slow else ()
        for write in writes:
            try:
                write(data)
            except RuntimeError:  # its socket is closed already, and the connection's end is on its way
                continue
        for outlet in slow:
            outlet.push(entries)
        if self.joining:
            self._let_in(entries)
        return len(data) * len(writes)

    def join(self, outlet: Outlet, position: str) -> int:
        """Follow from ``position``, between which and here there is nothing. What waited goes out, as in ``flush``."""
        sent = self.flush()
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
        write = outlet.fast_write
        if write is None:
            self.fast.pop(outlet, None)
            self.slow.add(outlet)
        else:
            self.slow.discard(outlet)
            self.fast[outlet] = write

    def standing(self, outlet: Outlet) -> str:
        """Where a live follower stands."""
        return self.joining.get(outlet, self.position)

    def _let_in(self, entries: Sequence[Entry]) -> None:
        for outlet, position in list(self.joining.items()):
            due = [e for e in entries if e.through > position]
            if due and outlet in self.joining:
                del self.joining[outlet]
                self.resort(outlet)
                outlet.push([from_position(due[0], position), *due[1:]])


class Holders:
    """Who holds a stream by one target: the target is attached as long as someone does."""

    __slots__ = ("count", "target")

    def __init__(self, target: Target) -> None:
        self.target, self.count = target, 0
