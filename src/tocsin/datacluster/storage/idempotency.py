"""Which batches were appended under which key: the newest ``max_keys``, none older than ``max_age_s``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from tocsin.clock import Clock
from tocsin.datacluster.storage.frames import Frame


@dataclass(frozen=True, slots=True)
class Appended:
    """The sequence numbers that a batch got; ``is_duplicate`` when its key had been used before."""

    first: int
    last: int
    count: int
    is_duplicate: bool = False

    def again(self) -> Appended:
        """The answer to a repetition."""
        return Appended(self.first, self.last, self.count, is_duplicate=True)


@dataclass(frozen=True, slots=True)
class RememberedKey:
    key: str
    first: int
    count: int
    time_us: int


class RememberedKeys:
    """Not safe by itself: whoever holds the log's write lock uses it."""

    def __init__(self, clock: Clock, max_keys: int, max_age_s: float) -> None:
        self._clock, self._max_keys, self._max_age_s = clock, max_keys, max_age_s
        self._by_key: OrderedDict[bytes, RememberedKey] = OrderedDict()

    def remember(self, frame: Frame) -> Appended:
        """Note a committed frame; without a key there is nothing to note."""
        if frame.key:
            found = RememberedKey(frame.key.decode(), frame.first_seq, frame.count, frame.time_us)
            self._by_key[frame.key] = found
            self._forget()
        return Appended(frame.first_seq, frame.last_seq, frame.count)

    def restore(self, remembered: Iterable[RememberedKey]) -> None:
        """Note what an earlier run remembered, oldest first."""
        for entry in remembered:
            self._by_key[entry.key.encode()] = entry
        self._forget()

    def find(self, key: bytes) -> Appended | None:
        found = self._by_key.get(key)
        if found is None or found.time_us < self._oldest_us():
            return None
        return Appended(found.first, found.first + found.count - 1, found.count, is_duplicate=True)

    def through(self, seq: int) -> list[RememberedKey]:
        """Those whose records end at or before ``seq``, oldest first."""
        self._forget()
        return [entry for entry in list(self._by_key.values()) if entry.first + entry.count - 1 <= seq]

    def _oldest_us(self) -> int:
        return int((self._clock.now() - self._max_age_s) * 1e6)

    def _forget(self) -> None:
        oldest = self._oldest_us()
        while self._by_key:
            first = next(iter(self._by_key.values()))
            if len(self._by_key) <= self._max_keys and first.time_us >= oldest:
                return
            self._by_key.popitem(last=False)
