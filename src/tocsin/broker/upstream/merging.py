"""Where a broker stands in each channel, and in each stream of it. No input or output here.

Rules kept here:

* A channel has one cursor, the end of what was pulled, and it only grows. A stream that is live has been given
  everything up to the cursor of its channel.
* A stream begins at the position that its attachment was answered with, or, where the attachment stood before
  this life of the broker, at what was acknowledged then. If the cursor is beyond it already, or results came
  before the hub knew the stream, the stream is behind: a replay up to a cursor fills it, what is pulled
  meanwhile waits, and it goes live in the step in which the replay is done. If more had to wait than
  ``max_waiting`` items, another round follows.
* Pages are taken in their order; a page that begins elsewhere than at the cursor is dropped, so one that came
  late or twice does no harm.
* An attachment that the cluster may have lost is in doubt: its stream is behind, and no replay begins, until it was
  made again; for what is pulled from then on says nothing of what lies before.
* A channel that was dropped and made again has another life. What was followed of the one before is over.
* Attachments with the same backend number are one stream. The cluster counts a result by the oldest of them,
  so none is given back before the last one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tocsin.broker.ports import Attached, Delivery, Item
from tocsin.broker.upstream.cluster import Made, ResultGap, ResultPage
from tocsin.protocol.messages import Hole
from tocsin.protocol.targets import channel_stream


@dataclass(slots=True)
class Stream:
    """``ids`` are the cluster's subscriptions that feed it, ``holders`` those of them that are wanted.

    ``target`` is where the replay under way ends, ``waiting`` what was pulled after it; no replay may end
    before ``least``, where pulls begin to give results of the stream.
    """

    name: str
    channel: str
    backend: int
    is_behind: bool = False
    ids: set[str] = field(default_factory=set)
    holders: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    least: str = ""
    target: str | None = None
    waiting: list[Item] = field(default_factory=list)


@dataclass(slots=True)
class Channel:
    name: str
    cursor: str
    life: int = 0
    streams: dict[int, Stream] = field(default_factory=dict)


class Merge:
    """``acknowledged`` is where an earlier life of this broker had got to, by channel."""

    def __init__(self, delivery: Delivery, max_waiting: int) -> None:
        self._delivery, self._max_waiting = delivery, max_waiting
        self.acknowledged: dict[str, str] = {}
        self.channels: dict[str, Channel] = {}
        self._by_id: dict[str, Stream] = {}
        self._by_name: dict[str, Stream] = {}
        self._behind: dict[str, Stream] = {}

    def attached(self, made: Made, *, is_again: bool) -> Attached:
        """An attachment was answered; ``is_again`` where it stood before this life of the broker."""
        begins = made.position
        if is_again:
            begins = max(begins, self.acknowledged.get(made.channel, begins))
        channel = self.channels.setdefault(made.channel, Channel(made.channel, begins, made.life))
        stream = channel.streams.get(made.backend)
        if stream is None:
            name = channel_stream(made.channel, made.life, made.backend)
            stream = Stream(name, made.channel, made.backend)
            channel.streams[made.backend] = self._by_name[name] = stream
            if begins < channel.cursor:
                self._fall_behind(stream)
        stream.ids.add(made.id)
        stream.holders.add(made.id)
        self._by_id[made.id] = stream
        return Attached(stream.name, self._delivery.position(stream.name) or begins)

    def doubt(self, id: str) -> None:
        """The attachment may be lost at the cluster, and is going to be made again."""
        stream = self._by_id.get(id)
        if stream is not None:
            self._fall_behind(stream)
            stream.doubted.add(id)
            self.abandon_fill(stream)

    def renewed(self, made: Made) -> None:
        """An attachment that was in doubt was made again: pulls may have lacked its results."""
        stream = self._by_id.get(made.id)
        if stream is not None:
            stream.doubted.discard(made.id)
            stream.least = max(stream.least, made.position)

    def detached(self, id: str) -> Sequence[str]:
        """Nobody wants ``id`` any more; which of the cluster's subscriptions can go."""
        stream = self._by_id.pop(id, None)
        if stream is None:
            return ()
        stream.holders.discard(id)
        stream.doubted.discard(id)
        if stream.holders:
            return ()
        channel = self.channels[stream.channel]
        del channel.streams[stream.backend], self._by_name[stream.name]
        self._behind.pop(stream.name, None)
        if not channel.streams:
            del self.channels[channel.name]
        return sorted(stream.ids)

    def refused(self, id: str) -> list[str]:
        """The cluster will not have ``id`` again: the stream that is over with it."""
        stream = self._by_id.get(id)
        for holder in list(stream.holders) if stream else ():
            self.detached(holder)
        return [stream.name] if stream else []

    def attachment(self, id: str) -> Attached | None:
        """What ``attached`` would say, where ``id`` stands and the hub knows its stream."""
        stream = self._by_id.get(id)
        position = self._delivery.position(stream.name) if stream else None
        return Attached(stream.name, position) if stream and position else None

    def channel_of(self, id: str) -> str | None:
        """The channel that ``id`` follows, by the name that the cluster gives it."""
        stream = self._by_id.get(id)
        return stream.channel if stream else None

    def stream(self, name: str) -> Stream | None:
        return self._by_name.get(name)

    def ids(self) -> set[str]:
        """Every subscription of the cluster that is needed."""
        return set().union(*(stream.ids for stream in self._by_name.values()))

    def cursors(self) -> dict[str, str]:
        return {name: channel.cursor for name, channel in self.channels.items()}

    def take(self, page: ResultPage) -> bool:
        """A pulled page; whether it was the one that was due."""
        channel = self.channels.get(page.channel)
        if channel is None or page.after != channel.cursor:
            return False
        if page.gap is not None:
            for stream in channel.streams.values():
                self._gap(stream, page.gap)
        for backend, items in _by_backend(page).items():
            if backend in channel.streams:
                self._give(channel.streams[backend], items)
        channel.cursor = max(channel.cursor, page.through)
        if page.results:  # last in the next request, so that every channel has its turn
            self.channels[channel.name] = self.channels.pop(channel.name)
        return True

    def is_other(self, name: str, life: int) -> bool:
        """Whether the channel that is followed under ``name`` had another life."""
        return name in self.channels and self.channels[name].life != life

    def forget(self, name: str) -> list[str]:
        """The cluster has no such channel any more; the streams that it had."""
        gone = self.channels.pop(name, Channel(name, "")).streams.values()
        for stream in gone:
            del self._by_name[stream.name]
            self._behind.pop(stream.name, None)
            for id in stream.holders:
                del self._by_id[id]
        return [stream.name for stream in gone]

    def settled(self) -> dict[str, str]:
        """Cursors of channels of which every stream is live: what may be acknowledged."""
        return {name: c.cursor for name, c in self.channels.items() if not any(s.is_behind for s in c.streams.values())}

    def behind(self) -> list[Stream]:
        """Streams whose replay can begin: the hub knows them, none is under way, and nothing is in doubt."""
        waiting = (s for s in self._behind.values() if s.target is None and not s.doubted)
        return [stream for stream in waiting if self._knows(stream)]

    def is_waiting_for_hub(self) -> bool:
        return any(not self._knows(s) for s in self._behind.values())

    def begin_fill(self, stream: Stream) -> tuple[str, str] | None:
        """What to replay first, (after, through]; None where nothing is missing, and the stream is live."""
        after = self._delivery.position(stream.name)
        if after is None or stream.doubted or not self._is_current(stream):
            return None
        stream.target, stream.waiting = max(self.channels[stream.channel].cursor, stream.least), []
        if after >= stream.target:
            self._go_live(stream)
            return None
        return after, stream.target

    def filled(self, stream: Stream, page: ResultPage) -> str | None:
        """A page of the replay; where to go on, or None where this round is over."""
        if not self._is_current(stream) or stream.target is None:
            return None
        if page.gap is not None:
            self._tell_gap(stream, page.gap)
        self._delivery.deliver(stream.name, [(r.position, bytes(r.payload)) for r in page.results])
        if page.through < stream.target:
            return page.through
        self._go_live(stream)
        return None

    def abandon_fill(self, stream: Stream) -> None:
        """The replay failed: another round is needed."""
        stream.target, stream.waiting = None, []

    def check_invariants(self) -> None:
        for channel in self.channels.values():
            assert channel.streams, channel.name
            for stream in channel.streams.values():
                assert self._by_name[stream.name] is stream
                assert stream.holders
                assert stream.holders <= stream.ids
                assert stream.is_behind or not stream.waiting
                assert stream.is_behind == (self._behind.get(stream.name) is stream)
                assert len(stream.waiting) <= self._max_waiting

    def _fall_behind(self, stream: Stream) -> None:
        stream.is_behind = True
        self._behind[stream.name] = stream

    def _go_live(self, stream: Stream) -> None:
        self._delivery.deliver(stream.name, stream.waiting)
        stream.waiting, stream.target, stream.is_behind = [], None, False
        self._behind.pop(stream.name, None)

    def _give(self, stream: Stream, items: list[Item]) -> None:
        if not stream.is_behind and self._knows(stream):
            self._delivery.deliver(stream.name, items)
            return
        self._fall_behind(stream)
        if stream.target is not None:
            stream.waiting += items
            if len(stream.waiting) > self._max_waiting:
                self.abandon_fill(stream)

    def _gap(self, stream: Stream, gap: ResultGap) -> None:
        if stream.is_behind or not self._knows(stream):
            self._fall_behind(stream)
            self.abandon_fill(stream)
        else:
            self._tell_gap(stream, gap)

    def _tell_gap(self, stream: Stream, gap: ResultGap) -> None:
        """The count is of the channel's results; how many of them were this stream's nobody knows."""
        position = self._delivery.position(stream.name)
        if position is not None and position < gap.through:
            self._delivery.gap(stream.name, [Hole(max(position, gap.after), gap.through, None)], gap.reason)

    def _knows(self, stream: Stream) -> bool:
        return self._delivery.position(stream.name) is not None

    def _is_current(self, stream: Stream) -> bool:
        return self._by_name.get(stream.name) is stream


def _by_backend(page: ResultPage) -> dict[int, list[Item]]:
    found: dict[int, list[Item]] = {}
    for result in page.results:
        item = (result.position, bytes(result.payload))
        for backend in result.backends:
            found.setdefault(backend, []).append(item)
    return found
