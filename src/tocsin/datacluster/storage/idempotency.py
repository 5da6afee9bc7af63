"""Which batches were appended under which key.

Rules kept here:

* The newest ``max_keys`` are known, none older than ``max_age_s``.
* A feed's keys name the feed and the number of the batch. Those of a feed's last batch stay however old
  they are and however many came since: the source may repeat that batch, and no earlier one, after any time.
* A key may come with a digest of what was sent. The same key with another digest is ``KeyReused``; without a digest
  it stands for whatever came under it.

Both parts of a key lie in the frame that they speak for, so they are durable with its records or not at all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tocsin.clock import Clock
from tocsin.datacluster.storage.frames import Frame
from tocsin.errors import KeyReused

_FEED = "feed "  # nobody who pushes can send a key with a space
_DIGEST = "\0"


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
    digest: str = ""

    def answer(self) -> Appended:
        return Appended(self.first, self.first + self.count - 1, self.count, is_duplicate=True)

    def check(self, digest: str) -> None:
        check_digests(self.key, self.digest, digest)


def check_digests(key: str, known: str, given: str) -> None:
    """``KeyReused`` where both are known and differ."""
    if known and given and known != given:
        raise KeyReused(key)


def feed_key(feed_id: str, batch: int) -> str:
    """The key of a feed's batch; what follows a slash tells its parts apart."""
    return f"{_FEED}{feed_id} {batch}"


def joined_key(key: str | None, digest: str) -> bytes:
    """A key and a digest as a frame holds them."""
    return f"{key}{_DIGEST}{digest}".encode() if key and digest else (key or "").encode()


def split_key(joined: bytes) -> tuple[str, str]:
    key, _, digest = joined.decode().partition(_DIGEST)
    return key, digest


@dataclass(slots=True)
class _LastBatch:
    number: int
    keys: dict[str, RememberedKey] = field(default_factory=dict)


class RememberedKeys:
    """Not safe by itself: whoever holds the log's write lock uses it."""

    def __init__(self, clock: Clock, max_keys: int, max_age_s: float) -> None:
        self._clock, self._max_keys, self._max_age_s = clock, max_keys, max_age_s
        self._by_key: OrderedDict[str, RememberedKey] = OrderedDict()
        self._feeds: dict[str, _LastBatch] = {}

    def remember(self, frame: Frame) -> None:
        """Note a committed frame; without a key there is nothing to note."""
        if frame.key:
            key, digest = split_key(frame.key)
            self._note(RememberedKey(key, frame.first_seq, frame.count, frame.time_us, digest))
            self._forget()

    def restore(self, remembered: Iterable[RememberedKey]) -> None:
        """Note what an earlier run remembered, oldest first."""
        for entry in remembered:
            self._note(entry)
        self._forget()

    def find(self, key: str, digest: str = "") -> Appended | None:
        """What the key did before; ``KeyReused`` if that was with other content."""
        found = self._by_key.get(key)
        if found is None or found.time_us < self._oldest_us():
            found = self._of_feeds().get(key) if key.startswith(_FEED) else None
        if found is None:
            return None
        found.check(digest)
        return found.answer()

    def check(self, key: str, digest: str) -> None:
        """``KeyReused`` if the key came with other content; safe without the lock, as one look is."""
        found = self._by_key.get(key)
        if found is not None and found.time_us >= self._oldest_us():
            found.check(digest)

    def through(self, seq: int) -> list[RememberedKey]:
        """Those whose records end at or before ``seq``, oldest first."""
        self._forget()
        known = {**self._of_feeds(), **self._by_key}
        return sorted((e for e in known.values() if e.first + e.count - 1 <= seq), key=lambda e: e.first)

    def _note(self, entry: RememberedKey) -> None:
        self._by_key[entry.key] = entry
        if not entry.key.startswith(_FEED):
            return
        feed, number = _feed_and_batch(entry.key)
        last = self._feeds.get(feed)
        if last is None or number > last.number:
            last = self._feeds[feed] = _LastBatch(number)
        if number == last.number:
            last.keys[entry.key] = entry

    def _of_feeds(self) -> dict[str, RememberedKey]:
        return {key: entry for last in self._feeds.values() for key, entry in last.keys.items()}

    def _oldest_us(self) -> int:
        return int((self._clock.now() - self._max_age_s) * 1e6)

    def _forget(self) -> None:
        oldest = self._oldest_us()
        while self._by_key:
            first = next(iter(self._by_key.values()))
            if len(self._by_key) <= self._max_keys and first.time_us >= oldest:
                return
            self._by_key.popitem(last=False)


def _feed_and_batch(key: str) -> tuple[str, int]:
    feed, _, rest = key.removeprefix(_FEED).partition(" ")
    return feed, int(rest.partition("/")[0])
