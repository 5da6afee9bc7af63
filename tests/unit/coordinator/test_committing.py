"""What follows from a change happens once it is durable, or the program says that it did not."""

from __future__ import annotations

import asyncio

import pytest

from support.coordinators import MemoryStore
from tocsin.coordinator.committing import Committer
from tocsin.coordinator.rows import Change
from tocsin.errors import Unavailable


def test_nobody_waits_for_ever_where_what_follows_fails():
    def fails() -> None:
        raise KeyError("a queue")

    async def story() -> None:
        store, failures = MemoryStore(), list[str]()
        committer = Committer(store, lambda: failures.append("failed"))
        commits = [committer.commit([Change("user", str(n), b"{}")], fails if n == 1 else int) for n in range(3)]
        async with asyncio.timeout(10):
            first, *others = await asyncio.gather(*commits, return_exceptions=True)
        assert first is None
        assert [type(one) for one in others] == [Unavailable] * 2
        assert failures == ["failed"]
        with pytest.raises(Unavailable):
            await committer.commit([], int)
        committer.close()

    asyncio.run(story())
