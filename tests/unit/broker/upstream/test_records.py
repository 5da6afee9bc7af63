"""Subscribers' records: batched, forwarded once, and each sender answered for its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from support.memory_cluster import DATASET
from support.results_cluster import ResultsCluster, Way, token
from tocsin.broker.upstream.cluster import ClusterClient
from tocsin.broker.upstream.records import RecordForwarder, RecordOptions
from tocsin.errors import LimitExceeded, NotFound, Refused, Unavailable
from tocsin.tokens import Principal

ANN = Principal("ann", ("ingest:*",))


class World:
    def __init__(self, **options: Any) -> None:
        self.cluster = ResultsCluster()
        self.way = Way(self.cluster)
        self.client = ClusterClient("http://cluster", token, 5.0, self.way)
        chosen: dict[str, Any] = {
            "delay_s": 0.02, "batch_bytes": 10_000, "batch_records": 100, "max_pending_bytes": 20_000, "give_up_s": 5.0,
            "backoff_min_s": 0.005, "backoff_max_s": 0.02,
        }  # fmt: skip
        self.forwarder = RecordForwarder(self.client, RecordOptions("north-1", **(chosen | options)))

    async def send(self, *ids: object, dataset: str = DATASET) -> tuple[int, int]:
        return await self.forwarder.records(dataset, [b'{"id":\n %s}' % str(i).encode() for i in ids], ANN)

    @property
    def ids(self) -> list[Any]:
        return [record["id"] for record in self.cluster.records]


def run(story: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story, 60)

    asyncio.run(bounded())


def test_many_senders_share_a_request_and_keep_their_order() -> None:
    async def story() -> None:
        w = World()
        answers = await asyncio.gather(*(w.send(n, n + 100) for n in range(50)))
        assert answers == [(2, 0)] * 50
        assert w.ids == [i for n in range(50) for i in (n, n + 100)]
        assert len(w.cluster.bodies) == 1
        assert (w.forwarder.counts.records, w.forwarder.counts.pending_bytes) == (100, 0)

    run(story())


def test_a_batch_is_bounded_by_bytes() -> None:
    async def story() -> None:
        w = World(batch_bytes=30)
        await asyncio.gather(*(w.send(n) for n in range(10)))
        assert w.ids == list(range(10))
        assert all(len(body) <= 30 for body, _ in w.cluster.bodies)

    run(story())


def test_one_who_sends_too_many_records_harms_nobody_else() -> None:
    async def story() -> None:
        w = World(batch_records=3)
        with pytest.raises(LimitExceeded, match="records in one message"):
            await w.send(*range(4))
        await asyncio.gather(w.send(1, 2), w.send(3, 4), w.send(5))
        assert w.ids == [1, 2, 3, 4, 5]
        assert [body.count(b"\n") for body, _ in w.cluster.bodies] == [2, 3]

    run(story())


def test_a_batch_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    async def story() -> None:
        w = World()
        w.way.loses = 2
        assert await asyncio.gather(w.send(1), w.send(2)) == [(1, 0), (1, 0)]
        assert w.ids == [1, 2]
        assert len(w.cluster.bodies) == 3
        assert len({key for _, key in w.cluster.bodies}) == 1
        await w.send(3)
        assert len({key for _, key in w.cluster.bodies}) == 2

    run(story())


def test_each_sender_hears_of_its_own_rejected_records() -> None:
    async def story() -> None:
        w = World()
        answers = await asyncio.gather(w.send(1, 2), w.send("oops", 3), w.send(4), w.send("x", "y"))
        assert answers == [(2, 0), (1, 1), (1, 0), (0, 2)]
        assert w.forwarder.counts.rejected == 3

    run(story())


def test_more_than_may_wait_is_refused_and_a_cluster_that_stays_away_is_told() -> None:
    async def story() -> None:
        w = World(max_pending_bytes=40, give_up_s=0.05)
        w.way.is_cut = True
        first = asyncio.create_task(w.send(1, 2, 3))
        await asyncio.sleep(0)
        with pytest.raises(LimitExceeded) as refused:
            await w.send(4, 5, 6)
        assert refused.value.retry_after_s is not None
        with pytest.raises(Unavailable):
            await first
        w.way.is_cut = False
        assert await w.send(7) == (1, 0)

    run(story())


def test_records_need_a_capability_and_a_dataset() -> None:
    async def story() -> None:
        w = World()
        with pytest.raises(Refused):
            await w.forwarder.records(DATASET, [b"{}"], Principal("bob", ("ingest:Other",)))
        with pytest.raises(NotFound):
            await w.send(1, dataset="../status")
        assert await w.forwarder.records(DATASET, [], ANN) == (0, 0)

    run(story())
