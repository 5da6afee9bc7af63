"""Catching up and going live: whatever happens in whatever order, nothing is missing and nothing comes twice.

A client applies the protocol's rule to every message; the laws are its complaints. The upstream's log is the truth.
"""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_world import MemoryTopics, place
from tocsin.broker.entries import Entry, body_of, frame_of
from tocsin.broker.follow import Follow
from tocsin.broker.hub import Hub
from tocsin.broker.metering import Meters
from tocsin.broker.outbox import Outbox, OutboxLimits
from tocsin.broker.ports import Page
from tocsin.broker.stream import Stream
from tocsin.protocol.codec import from_broker
from tocsin.protocol.messages import Gap, Notification

STREAM = "topic:t"


@dataclass
class Reader:
    """The client's rule, and everything that it saw."""

    position: str
    taken: list[str] = field(default_factory=list)
    gapped: int = 0

    def read(self, frame: bytes) -> None:
        message = from_broker(body_of(frame))
        if isinstance(message, Gap):
            for hole in message.holes:
                assert hole.after <= self.position < hole.through, f"a gap elsewhere: {hole} at {self.position}"
                assert hole.count is not None
                self.gapped += hole.count
                self.position = hole.through
            return
        assert isinstance(message, Notification)
        assert message.after <= self.position, f"a hole that nobody announced: {message} at {self.position}"
        assert message.through > self.position, f"an echo: {message} at {self.position}"
        self.taken.append(message.through)
        self.position = message.through


@dataclass(eq=False)
class Pipe:
    """An outlet with a socket of its own: paused when told to, which it reads before anything is done to it."""

    reader: Reader
    follow: Follow | None = None
    limits: OutboxLimits = field(default_factory=lambda: OutboxLimits(600, 10**9, 200))
    outbox: Outbox | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    ends: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair)

    @property
    def descriptor(self) -> int | None:
        return self.ends[0].fileno() if self.outbox is None else None

    @property
    def is_ready(self) -> bool:
        return self.outbox is None

    async def writable(self) -> None:
        while self.outbox is not None:
            self.woken.clear()
            await self.woken.wait()

    def push(self, entries: Sequence[Entry]) -> None:
        self.drain()
        if self.outbox is None:
            for entry in entries:
                self.reader.read(frame_of(entry))
        else:
            self.outbox.push(entries)

    def pause(self) -> None:
        self.drain()
        if self.outbox is None:
            self.outbox = Outbox(self.limits)
            if self.follow:
                self.follow.resort()

    def resume(self) -> None:
        while self.outbox:
            for entry in self.outbox.take():
                self.reader.read(frame_of(entry))
        self.outbox = None
        if self.follow:
            self.follow.resort()
        self.woken.set()

    def drain(self) -> None:
        """Read every frame that was written to the socket."""
        data = b""
        with suppress(BlockingIOError):
            while True:
                data += self.ends[1].recv(1 << 16, socket.MSG_DONTWAIT)
        while data:
            size = len(data) - len(body_of(data)) + _length(data)
            self.reader.read(data[:size])
            data = data[size:]

    def close(self) -> None:
        for end in self.ends:
            end.close()


def _length(data: bytes) -> int:
    return int.from_bytes(data[2:4]) if data[1] == 126 else data[1]


class Story:
    """A stream, its truth, and a few readers that come and go."""

    def __init__(self, seed: int, cache_bytes: int, page_items: int) -> None:
        self.random = Random(seed)
        self.due: list[object] = []
        self.hub = Hub(cache_bytes, 0.0, Meters(10.0, 0.0), lambda: 0.0, lambda _, run: self.due.append(run))
        self.topics = MemoryTopics(page_items=page_items, delivery=self.hub)
        self.topics.log[STREAM] = []
        for _ in range(self.random.randrange(6)):
            self.topics.put("t", b"1")
        self.stream = self.hub.open(STREAM, self.truth[-1] if self.truth else place(0))
        self.readers: list[Pipe] = []

    @property
    def truth(self) -> list[str]:
        return [position for position, _ in self.topics.log[STREAM]]

    async def replay(self, stream: Stream, after: str) -> Page:
        through = stream.position
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        page = await self.topics.replay(stream.name, after, through)
        return Page(page.items, max(page.through, through), True, page.gap) if page.is_end else page

    async def join(self) -> None:
        """Someone comes, or comes back from where it was, or from another broker that is ahead of this one."""
        here = int(self.stream.position)
        position = place(
            self.random.randrange(here + 2) if self.random.random() < 0.3 else self.random.randrange(here + 1)
        )
        pipe = Pipe(Reader(position))
        pipe.start = position
        follow = pipe.follow = Follow(self.hub, self.stream, pipe, position)
        page = await follow.page(self.replay) if follow.needs_page else None
        if page is not None and follow.skip(page):
            pipe.reader.position, page = follow.sent, None  # the answer tells the client
        follow.start(self.replay, page, 0.0)
        self.readers.append(pipe)

    def deliver(self) -> None:
        for _ in range(self.random.randrange(1, 5)):
            self.topics.put("t", b"%d" % self.random.randrange(10**6))

    def tick(self) -> None:
        due, self.due = self.due, []
        for run in due:
            run()

    async def act(self, action: str) -> None:
        match action:
            case "join":
                await self.join()
            case "deliver":
                self.deliver()
            case "tick":
                self.tick()
            case "yield":
                await asyncio.sleep(0)
            case "pause" | "resume" if self.readers:
                getattr(self.random.choice(self.readers), action)()

    async def finish(self) -> None:
        for _ in range(60):
            for pipe in self.readers:
                pipe.resume()
            self.tick()
            await asyncio.sleep(0)
        ahead = self.truth[-1] if self.truth else place(0)
        for pipe in self.readers:
            pipe.drain()
            reader, start = pipe.reader, pipe.start
            due = [p for p in self.truth if p > start]
            assert len(reader.taken) + reader.gapped == len(due)
            assert reader.taken == sorted(set(reader.taken))
            assert set(reader.taken) <= set(due)
            assert not due or reader.position == ahead
            assert pipe.follow.position == max(start, self.stream.position)


ACTIONS = st.sampled_from(["join", "deliver", "deliver", "tick", "tick", "yield", "yield", "pause", "resume"])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 2000, 10**6]), st.integers(1, 4), st.lists(ACTIONS, max_size=40))
def test_delivered_and_gapped_are_all_in_order_and_none_twice(seed, cache_bytes, page_items, actions):
    async def story():
        told = Story(seed, cache_bytes, page_items)
        try:
            for action in actions:
                await told.act(action)
            await told.finish()
        finally:
            for pipe in told.readers:
                pipe.close()

    asyncio.run(story())
