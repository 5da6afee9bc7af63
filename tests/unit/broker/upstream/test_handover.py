"""Brokers ask each other for many topics at once when one comes or goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec
import pytest

from support.topic_brokers import LocalBroker, agree, brokers
from tocsin.broker.upstream.handover import Batch, Handed, Handover, PeerClient
from tocsin.broker.upstream.routes import MAX_BATCH_BYTES
from tocsin.broker.upstream.topics import owner_of
from tocsin.config import load
from tocsin.errors import TocsinError
from tocsin.protocol.coordination import BrokerInfo
from tocsin.tokens import Principal

ANN = Principal("ann", ("publish:*", "topic:*"))
ME = BrokerInfo("me", "http://127.0.0.1:1")


class Peer:
    """A broker that has seen each topic up to its name, and answers for ``page`` of them at most."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.asked: list[int] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split()[0])
        topics = msgspec.json.decode(await reader.readexactly(length), type=Batch).topics
        self.asked.append(len(topics))
        body = msgspec.json.encode(Handed([Handover(None, topic) for topic in topics[: self.page]]))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()


def asked_of(peer: Peer, story: Callable[[PeerClient, BrokerInfo], Awaitable[None]]) -> list[int]:
    """How many topics each request named."""

    async def run() -> None:
        async with await asyncio.start_server(peer.serve, "127.0.0.1", 0) as server:
            other = BrokerInfo("other", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            client = PeerClient(lambda: None, timeout_s=5.0, parallel=3, batch=400)
            await story(client, other)
            await client.close()

    asyncio.run(asyncio.wait_for(run(), 30))
    return peer.asked


async def thousand(client: PeerClient, *others: BrokerInfo) -> list[list[Handover]]:
    return await asyncio.gather(*(client.take_over(f"{n:04}", ME, others) for n in range(1000)))


ALL = [[Handover(None, f"{n:04}")] for n in range(1000)]


def test_a_thousand_topics_are_a_few_requests_and_each_is_answered() -> None:
    async def story(client: PeerClient, other: BrokerInfo) -> None:
        assert await thousand(client, other) == ALL

    assert asked_of(Peer(page=4096), story) == [400, 400, 200]


def test_what_does_not_fit_in_an_answer_is_asked_for_again() -> None:
    async def story(client: PeerClient, other: BrokerInfo) -> None:
        assert await thousand(client, other) == ALL

    assert asked_of(Peer(page=300), story) == [400, 400, 400, 100]


@pytest.mark.parametrize("page", [0, 4096])
def test_a_broker_that_gives_no_answer_has_nothing_and_keeps_nobody_from_others(page: int) -> None:
    async def story(client: PeerClient, other: BrokerInfo) -> None:
        dead = BrokerInfo("dead", "http://127.0.0.1:9")
        assert await thousand(client, dead, other) == (ALL if page else [[]] * 1000)

    asked_of(Peer(page), story)


def test_the_longest_request_that_the_settings_allow_is_taken() -> None:
    most = 4096
    with pytest.raises(TocsinError, match="4096"):
        load(overrides={"upstream.handover_topics": most + 1})
    assert len(msgspec.json.encode(Batch("a", "http://a", ['"' * 255] * most))) < MAX_BATCH_BYTES


def test_a_broker_that_comes_takes_its_topics_with_their_logs_in_a_few_requests() -> None:
    async def story() -> None:
        settings = {"upstream__topic_page": "2 kB", "upstream__handover_topics": "120", "upstream__timeout": "30s"}
        async with brokers("a", "b", **settings) as (a, b):
            topics = [f"t{n}" for n in range(300) if owner_of(f"t{n}", ("a", "b")) == "b"]
            agree([a], heard_by=[a])
            before = await published(a, topics, b'"some 20 bytes of it"')
            batches = counted(a)
            agree([a, b])
            after = await published(b, topics, b"2")
            assert after == [position[:-1] + "2" for position in before], "all go on in their epochs"
            assert sum(answered for _, answered in batches) == len(topics)
            assert all(asked <= 120 and answered <= 98 for asked, answered in batches), "what a request may hold"
            assert len(batches) <= 6

    run(story())


async def published(broker: LocalBroker, topics: Sequence[str], payload: bytes) -> list[str]:
    return await asyncio.gather(*(broker.sources.topics.publish(topic, payload, ANN) for topic in topics))


def counted(broker: LocalBroker) -> list[tuple[int, int]]:
    """Topics asked for, and answered, of each request that follows."""
    batches: list[tuple[int, int]] = []
    hand_over = broker.sources.topics.hand_over

    def counting(asked: Batch) -> Handed:
        handed = hand_over(asked)
        batches.append((len(asked.topics), len(handed.topics)))
        return handed

    broker.sources.topics.hand_over = counting  # type: ignore[method-assign]
    return batches


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60))
