"""What one subscription has received and its application has not taken yet.

Rules kept here:

* An application sees every notification once and in order, or a ``Missed`` that covers it.
* A notification up to where the subscription stands is an echo, and dropped.
* One who stands where the stream has never been is put back, and told so; positions go forward otherwise.
* Announced holes are told when the stream reaches them; holes that nobody announced are told as
  ``unannounced``, for a hole is never silent.
* Never more than so many items and bytes wait; beyond that the oldest give way to one ``Missed``.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from tocsin.protocol import messages

MAX_HOLES = 10_000
UNANNOUNCED = "unannounced"
SLOW = "slow"
LOST = "lost"


@dataclass(frozen=True, slots=True)
class Delivered:
    """A notification: everything of ``stream`` in (``after``, ``through``]."""

    subscription: str
    stream: str
    after: str
    through: str
    raw: bytes

    @property
    def payload(self) -> Any:
        """The payload, decoded now."""
        return msgspec.json.decode(self.raw)

    @property
    def count(self) -> int:
        return 1

    @property
    def reason(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Missed:
    """What of ``stream`` in (``after``, ``through``] will not come; ``count`` is None where nobody knows how many."""

    subscription: str
    stream: str
    after: str
    through: str
    count: int | None
    reason: str

    @property
    def raw(self) -> bytes:
        return b""


Item = Delivered | Missed


class Inbox:
    def __init__(self, subscription: str, max_items: int, max_bytes: int, position: str | None = None) -> None:
        self._subscription, self._max_items, self._max_bytes = subscription, max_items, max_bytes
        self._queue: deque[Item] = deque()
        self._bytes = 0
        self._holes: list[tuple[messages.Hole, str]] = []  # announced and not reached, in order
        self.stream: str | None = None
        self.position = position  # up to here everything was received or told missing
        self.taken = position  # up to here the application has it
        self.is_turned = False  # the stream was never there, and the application does not know it yet

    def __len__(self) -> int:
        return len(self._queue)

    def stand(self, standing: messages.Standing) -> None:
        """Notifications after the standing's position follow. What we have ourselves counts more than it."""
        if self.stream not in (None, standing.stream):
            self._change_stream(standing)
        elif self.position is None:
            self._move_to(standing.position)
        elif standing.recovered and standing.position > self.position:
            self._move_to(standing.position)
            self._pass_holes()
        self.stream = standing.stream

    def deliver(self, notification: messages.Notification) -> bool:
        """Whether something new waits."""
        mine = self.position
        if mine is None or notification.through <= mine:
            return False
        if notification.after > mine:
            mine = self._reach(notification.after)
            if notification.through <= mine:
                return True
        self._put(
            Delivered(self._subscription, notification.stream, mine, notification.through, bytes(notification.payload))
        )
        if self._holes:
            self._pass_holes()
        return True

    def announce(self, gap: messages.Gap) -> bool:
        """Whether something new waits."""
        if gap.reason == messages.AHEAD and gap.holes:
            return self._turn_back(gap.holes[-1].through)
        before = len(self._queue)
        ahead = [(hole, gap.reason) for hole in gap.holes if hole.through > (self.position or "")]
        self._holes = sorted(self._holes + ahead, key=lambda known: (known[0].after, known[0].through))
        self._pass_holes()
        if len(self._holes) > MAX_HOLES:
            self._miss(self._holes[-1][0].through, None, LOST)
            self._holes.clear()
        return len(self._queue) != before

    def take(self) -> Item | None:
        """The next item for the application, which has it from now on."""
        if not self._queue:
            return None
        item = self._queue.popleft()
        self._bytes -= len(item.raw)
        self.taken = item.through if self._queue else self.position
        if item.stream != self.stream:
            self.taken = None  # a position of another stream: nothing of this one
        if item.reason == messages.AHEAD:
            self.is_turned = any(one.reason == messages.AHEAD for one in self._queue)
        return item

    def take_all(self) -> list[Item]:
        return list(iter(self.take, None))

    def _reach(self, after: str) -> str:
        """Go forward to ``after`` over announced holes, telling what lies between them as unannounced."""
        self._pass_holes()
        while (mine := self.position or "") < after:
            ahead = self._holes[0][0].after if self._holes else after
            self._miss(min(after, ahead), None, UNANNOUNCED)
            self._pass_holes()
        return mine

    def _pass_holes(self) -> None:
        """Step over every announced hole that begins where we stand or before it."""
        while self._holes and self._holes[0][0].after <= (self.position or ""):
            hole, reason = self._holes.pop(0)
            if hole.through > (self.position or ""):
                self._miss(hole.through, hole.count if hole.after == self.position else None, reason)

    def _miss(self, through: str, count: int | None, reason: str) -> None:
        stream = self.stream or ""
        self._put(Missed(self._subscription, stream, self.position or "", through, count, reason))

    def _turn_back(self, through: str) -> bool:
        """The stream is at ``through``, and has never been beyond it.

        Who stands there goes on from it, and what was announced means nothing; who stands before it is not meant.
        """
        if self.position is None or self.position <= through:
            return False
        self._holes.clear()
        self._miss(through, None, messages.AHEAD)
        self.is_turned = True
        return True

    def _change_stream(self, standing: messages.Standing) -> None:
        """Positions of another stream mean nothing here: what came between is unknown."""
        self.stream = standing.stream
        self._holes.clear()
        self._put(Missed(self._subscription, standing.stream, "", standing.position, None, LOST))

    def _move_to(self, position: str) -> None:
        self.position = position
        if not self._queue:
            self.taken = position

    def _put(self, item: Item) -> None:
        self.position = item.through
        self._queue.append(item)
        self._bytes += len(item.raw)
        while len(self._queue) > 1 and (len(self._queue) > self._max_items or self._bytes > self._max_bytes):
            self._shed()

    def _shed(self) -> None:
        """The two oldest become one ``Missed``; that a stream led back is told rather than that we were slow."""
        first, second = self._queue.popleft(), self._queue.popleft()
        self._bytes -= len(first.raw) + len(second.raw)
        count = None if first.count is None or second.count is None else first.count + second.count
        reason = messages.AHEAD if messages.AHEAD in (first.reason, second.reason) else SLOW
        merged = Missed(self._subscription, second.stream, first.after, second.through, count, reason)
        self._queue.appendleft(merged)
