"""What peers send waits for the hub to know its stream, within bounds and never with a hole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from tocsin.broker.ports import Item
from tocsin.broker.upstream.inlet import Inlet
from tocsin.protocol.messages import Hole, Notification


class Stream:
    """A hub with one stream, which it knows once ``at`` is said."""

    def __init__(self) -> None:
        self.at: str | None = None
        self.items: list[Item] = []

    def position(self, stream: str) -> str | None:
        return self.at

    def deliver(self, stream: str, items: Sequence[Item]) -> None:
        self.items.extend(items)
        self.at = items[-1][0]

    def gap(self, stream: str, holes: Sequence[Hole], reason: str) -> None: ...

    def end(self, stream: str, code: str, detail: str) -> None: ...


@pytest.mark.parametrize(
    ("payload_bytes", "is_missed"),
    [pytest.param(10, False, id="few bytes are all given"), pytest.param(10**6, True, id="many are asked for again")],
)
def test_what_is_held_back_for_the_hub_is_bounded(payload_bytes: int, is_missed: bool) -> None:
    async def story() -> None:
        hub, missing = Stream(), asyncio.Event()
        inlet = Inlet(hub, lambda _: missing.set())
        payload = msgspec.Raw(b"1" * payload_bytes)
        for number in range(10):
            assert inlet.take(Notification("topic:news", f"{number:02}", f"{number + 1:02}", payload))
        assert not hub.items
        hub.at = "00"
        while not hub.items:
            await asyncio.sleep(0.001)
        assert missing.is_set() == is_missed
        assert sum(len(body) for _, body in hub.items) < 6_000_000
        assert [at for at, _ in hub.items] == [f"{number + 1:02}" for number in range(len(hub.items))]
        assert (len(hub.items) == 10) != is_missed

    asyncio.run(story())
