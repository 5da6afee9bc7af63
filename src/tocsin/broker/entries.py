"""What a stream says, encoded once: a notification or a gap, with the span of the stream that it covers.

An entry covers (after, through]; the entries of a stream follow each other without a space between. The
bytes hold no subscription's id, so that everyone gets the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tocsin.protocol.codec import encoded, from_broker, text_frame
from tocsin.protocol.messages import Gap, Hole, Notification

SLOW = "slow"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """``frame`` is empty for what was shed: its gap is encoded when it leaves. A control entry has no stream."""

    stream: str
    after: str
    through: str
    frame: bytes
    model_bytes: int
    count: int | None  # notifications covered; None where nobody knows

    @property
    def is_control(self) -> bool:
        return not self.stream

    @property
    def is_shed(self) -> bool:
        return not self.frame


def notification(stream: str, after: str, through: str, payload: bytes) -> Entry:
    frame = text_frame(encoded(Notification(stream, after, through, msgspec.Raw(payload))))
    return Entry(stream, after, through, frame, len(payload), 1)


def gap(stream: str, after: str, holes: Sequence[Hole], reason: str) -> Entry:
    """``after`` is where the stream stood; the entry reaches to the end of the last hole."""
    frame = text_frame(encoded(Gap(stream, holes, reason)))
    return Entry(stream, after, holes[-1].through, frame, 0, total(h.count for h in holes))


def control(frame: bytes) -> Entry:
    return Entry("", "", "", frame, 0, 0)


def shed(first: Entry, last: Entry, count: int | None) -> Entry:
    """The hole that leaves where the entries from ``first`` to ``last`` were."""
    return Entry(first.stream, first.after, last.through, b"", 0, count)


def frame_of(entry: Entry) -> bytes:
    """The bytes to send; a gap where something was shed."""
    if entry.frame:
        return entry.frame
    return text_frame(encoded(Gap(entry.stream, [Hole(entry.after, entry.through, entry.count)], SLOW)))


def from_position(entry: Entry, after: str) -> Entry:
    """The same for one who stands at ``after``, between which and ``entry.after`` there is nothing."""
    if entry.after <= after or entry.is_shed:
        return entry
    message = from_broker(body_of(entry.frame))
    if isinstance(message, Gap):
        first = message.holes[0]
        return gap(entry.stream, after, [Hole(after, first.through, first.count), *message.holes[1:]], message.reason)
    assert isinstance(message, Notification)
    return notification(entry.stream, after, entry.through, bytes(message.payload))


def body_of(frame: bytes) -> bytes:
    """The message in a frame that ``text_frame`` made."""
    return frame[{126: 4, 127: 10}.get(frame[1], 2) :]


def total(counts: Iterable[int | None]) -> int | None:
    """The sum, or None where one is unknown."""
    known = list(counts)
    return None if None in known else sum(c for c in known if c is not None)
