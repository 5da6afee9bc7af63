"""The latest entries of all streams, bounded by bytes; the oldest of all leave first.

What a stream has here is always its newest part without a hole, so a subscriber that stands inside it can be
brought up to date without asking anybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from tocsin.broker.entries import Entry

ENTRY_BYTES = 200  # of an entry beside its frame


class Recent:
    """One stream's part."""

    __slots__ = ("entries", "is_dropped")

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.is_dropped = False

    def since(self, position: str, max_bytes: int) -> Sequence[Entry] | None:
        """Entries that reach past ``position``, the first about ``max_bytes``; None where they begin later."""
        entries = self.entries
        if not entries or position < entries[0].after:
            return None
        behind = next((i for i, e in enumerate(reversed(entries)) if e.through <= position), len(entries))
        chosen, size = [], 0
        for entry in islice(entries, len(entries) - behind, None):
            chosen.append(entry)
            size += len(entry.frame)
            if size >= max_bytes:
                break
        return chosen


class Cache:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._order: deque[Recent] = deque()  # whose entry is the next to leave
        self._passed = 0  # places in the order that are none any more
        self.size_bytes = 0

    def add(self, recent: Recent, entries: Iterable[Entry]) -> None:
        for entry in entries:
            recent.entries.append(entry)
            self._order.append(recent)
            self.size_bytes += len(entry.frame) + ENTRY_BYTES
        while self.size_bytes > self._max_bytes:
            self._evict()

    def drop(self, recent: Recent) -> None:
        """A stream that nobody holds any more; its places in the order go when they are many."""
        self.size_bytes -= sum(len(e.frame) + ENTRY_BYTES for e in recent.entries)
        self._passed += len(recent.entries)
        recent.entries.clear()
        recent.is_dropped = True
        if self._passed * 2 > len(self._order):
            self._order = deque(r for r in self._order if not r.is_dropped)
            self._passed = 0

    def _evict(self) -> None:
        recent = self._order.popleft()
        if recent.is_dropped:
            self._passed -= 1
        else:
            self.size_bytes -= len(recent.entries.popleft().frame) + ENTRY_BYTES
