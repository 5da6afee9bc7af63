"""Which targets are attached: one attachment for all who hold a target, from the first to the last.

Attaching and detaching of one target never overlap: whoever comes while it is being detached waits, then
attaches it again. A stream is closed when the last of its targets goes.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from tocsin.broker.gates import Gates
from tocsin.broker.hub import Hub
from tocsin.broker.ports import Page, Upstream
from tocsin.broker.stream import Holders, Stream
from tocsin.protocol.targets import ChannelTarget, Target, target_key

log = logging.getLogger(__name__)


class Holding:
    def __init__(self, hub: Hub, channels: Upstream, topics: Upstream, max_replays: int) -> None:
        self._hub, self._channels, self._topics = hub, channels, topics
        self._by_key: dict[str, Stream] = {}
        self._gates: Gates[str] = Gates()
        self._replays = asyncio.Semaphore(max_replays)

    def upstream(self, target: Target) -> Upstream:
        return self._channels if isinstance(target, ChannelTarget) else self._topics

    async def hold(self, target: Target) -> Stream:
        """The target's stream, attached, with one more holder."""
        key = target_key(target)
        stream = self._by_key.get(key)
        if stream is None or stream.holders[key].count == 0:
            async with self._gates.passed(key):
                stream = self._by_key.get(key) or await self._attach(key, target)
                stream.holders[key].count += 1
        else:
            stream.holders[key].count += 1
        return stream

    async def let_go(self, stream: Stream, target: Target) -> None:
        """One holder less."""
        key = target_key(target)
        stream.holders[key].count -= 1
        if stream.holders[key].count == 0:
            async with self._gates.passed(key):
                if self._by_key.get(key) is stream and stream.holders[key].count == 0:
                    await self._detach(key, stream)

    def has(self, stream: Stream, target: Target) -> bool:
        """Whether ``stream`` is still the target's: it may have ended while somebody was about to hold it."""
        return self._by_key.get(target_key(target)) is stream

    def end(self, stream: Stream) -> None:
        """The stream is over, and its upstream holds nothing for it any more: whoever comes attaches anew."""
        for key in stream.holders:
            if self._by_key.get(key) is stream:
                del self._by_key[key]
        self._hub.close(stream)

    async def replay(self, stream: Stream, after: str) -> Page:
        """The next page of a stream's past, up to where it stands when asked."""
        through = stream.position
        upstream = self.upstream(next(iter(stream.holders.values())).target)
        async with self._replays:
            page = await upstream.replay(stream.name, after, through)
        return replace(page, through=max(page.through, through)) if page.is_end else page

    async def is_beyond(self, stream: Stream, position: str) -> bool:
        """Whether ``position`` is none that the stream ever reached; Unavailable where nobody can tell now."""
        upstream = self.upstream(next(iter(stream.holders.values())).target)
        async with self._replays:
            return await upstream.is_beyond(stream.name, position)

    async def _attach(self, key: str, target: Target) -> Stream:
        attached = await self.upstream(target).attach(target)
        stream = self._hub.open(attached.stream, attached.position)
        stream.holders[key] = Holders(target)
        self._by_key[key] = stream
        return stream

    async def _detach(self, key: str, stream: Stream) -> None:
        target = stream.holders.pop(key).target
        del self._by_key[key]
        if not stream.holders:
            self._hub.close(stream)
        try:
            await self.upstream(target).detach(target)
        except Exception as error:  # the upstream finds what nobody holds when it starts or tries again
            log.warning("%s could not be detached: %s", key, error)
