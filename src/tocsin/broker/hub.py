"""All streams: what upstreams deliver goes out to everyone who follows, at the next tick.

Entries that arrive within a tick leave together. The tick is immediate after a pause and at most ``tick_s``
away under load, so that a busy broker makes fewer, larger writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tocsin.broker import entries
from tocsin.broker.cache import Cache
from tocsin.broker.entries import Entry
from tocsin.broker.metering import Meters, MovingRate
from tocsin.broker.ports import Item
from tocsin.broker.stream import Stream, flush
from tocsin.protocol.messages import Hole

Schedule = Callable[[float, Callable[[], None]], object]
"""Runs a function once, so many seconds from now."""


class Hub:
    """``chunk_bytes`` of the past are sent to one client before it has to read."""

    def __init__(
        self,
        cache_bytes: int,
        tick_s: float,
        meters: Meters,
        now: Callable[[], float],
        schedule: Schedule,
        chunk_bytes: int = 64_000,
    ) -> None:
        self._streams: dict[str, Stream] = {}
        self.chunk_bytes = chunk_bytes
        self.cache = Cache(cache_bytes)
        self.meters = meters
        self._tick_s, self._now, self._schedule = tick_s, now, schedule
        self._dirty: list[Stream] = []
        self._flushed_at = -tick_s
        self.on_end: Callable[[Stream, str, str], None] | None = None

    def __getitem__(self, name: str) -> Stream:
        return self._streams[name]

    def open(self, name: str, position: str) -> Stream:
        """The stream, begun at ``position`` where it is new."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, position, MovingRate(self.meters.window_s, self._now()))
        return stream

    def close(self, stream: Stream) -> None:
        """Nobody holds it any more."""
        del self._streams[stream.name]
        self.cache.drop(stream.recent)

    # --- for upstreams ----------------------------------------------------------------------------------

    def deliver(self, stream: str, items: Sequence[Item]) -> None:
        known = self._streams.get(stream)
        if known is None:
            return
        made: list[Entry] = []
        position = known.position
        for through, payload in items:
            if through > position:
                made.append(entries.notification(stream, position, through, payload))
                position = through
        if made:
            self._take(known, made)

    def gap(self, stream: str, holes: Sequence[Hole], reason: str) -> None:
        known = self._streams.get(stream)
        if known is None:
            return
        new = [Hole(max(h.after, known.position), h.through, h.count) for h in holes if h.through > known.position]
        if new:
            self.meters.gaps += 1
            self._take(known, [entries.gap(stream, known.position, new, reason)])

    def end(self, stream: str, code: str, detail: str) -> None:
        known = self._streams.get(stream)
        if known is not None and self.on_end is not None:
            self.flush()
            self.on_end(known, code, detail)

    def position(self, stream: str) -> str | None:
        known = self._streams.get(stream)
        return known.position if known else None

    def streams(self) -> Collection[str]:
        return self._streams.keys()

    def all(self) -> Collection[Stream]:
        return self._streams.values()

    # --- the tick ---------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send everything that waits, now."""
        dirty, self._dirty = self._dirty, []
        self._flushed_at = self._now()
        self.sent(flush(dirty))

    def sent(self, wire_bytes: int) -> None:
        if wire_bytes:
            self.meters.wire_bytes += wire_bytes
            self.meters.wire_out.add(wire_bytes, self._now())

    def _take(self, stream: Stream, made: Sequence[Entry]) -> None:
        if not self._dirty:
            since = self._now() - self._flushed_at
            self._schedule(max(0.0, self._tick_s - since), self.flush)
        if not stream.waiting:
            self._dirty.append(stream)
        stream.append(made)
        self.cache.add(stream.recent, made)
        self._count(stream, made)

    def _count(self, stream: Stream, made: Sequence[Entry]) -> None:
        now, followers = self._now(), stream.followers
        size = sum([e.model_bytes for e in made])
        stream.rate.add(size, now)
        self.meters.model_in.add(size, now)
        self.meters.model_out.add(size * followers, now)
        self.meters.delivered += len(made) * followers
