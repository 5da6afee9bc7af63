"""What a slow subscriber does without: a policy names the entries, and holes are left in their places.

A hole stands where its entries stood, so that the gap is told after everything before it and before
everything after it, stream by stream. Holes do not reach over an answer: it may be that of a subscription to the
same stream, which has to hear of what it lost from there on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tocsin.broker.entries import Entry, shed, total


class Shedding(Protocol):
    def choose(self, waiting: Sequence[Entry], excess_bytes: int) -> Collection[int]:
        """Indices of entries to drop so that at least ``excess_bytes`` are freed.

        Control entries and holes that are there already must not be named; where all the rest is not
        enough, all the rest.
        """
        ...


class OldestFirst:
    """What has waited longest goes first: of a backlog, the news is worth more than the past."""

    def choose(self, waiting: Sequence[Entry], excess_bytes: int) -> Collection[int]:
        chosen: set[int] = set()
        freed = 0
        for i, entry in enumerate(waiting):
            if freed >= excess_bytes:
                break
            if not entry.is_control and not entry.is_shed:
                chosen.add(i)
                freed += len(entry.frame)
        return chosen


POLICIES: Mapping[str, type[Shedding]] = {"oldest": OldestFirst}


def without(waiting: Sequence[Entry], dropped: Collection[int]) -> list[Entry]:
    """``waiting`` with holes for what is dropped; holes of a stream with nothing between them are one."""
    left: list[Entry] = []
    open_holes: dict[str, int] = {}  # stream → where in ``left`` its last word is a hole
    for i, entry in enumerate(waiting):
        if i not in dropped and not entry.is_shed:
            open_holes.pop(entry.stream, None)
            if entry.is_control:
                open_holes.clear()
            left.append(entry)
        elif (at := open_holes.get(entry.stream)) is not None:
            left[at] = shed(left[at], entry, total((left[at].count, entry.count)))
        else:
            open_holes[entry.stream] = len(left)
            left.append(shed(entry, entry, entry.count))
    return left
