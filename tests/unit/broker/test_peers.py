"""Other brokers as clients: their own outbox, and certificates of a private authority."""

import asyncio
import logging
import ssl

import pytest

from broker_world import eventually, place, run, token_of, topic, world
from tocsin.broker.requests import Requests
from tocsin.broker.server import tls_context
from tocsin.broker.upstream.peers import NotSettled, PeerEvents, PeerLink, PeerOptions
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import Notification
from tocsin.tls import trusting

AS_PEER = ["broker:b2", "topic:*"]
SIZES = {"write_buffer": 4_000, "outbox_bytes": 100_000, "outbox_hard_bytes": 200_000}
BIG = b'"' + b"x" * 50_000 + b'"'


def test_a_peer_that_stalls_loses_nothing_that_its_outbox_holds():
    async def scenario():
        async with world(**SIZES) as w, w.client(max_queue=1) as peer:
            await peer.login("b2", topic("big"), capabilities=AS_PEER)
            peer.socket.transport.pause_reading()
            for _ in range(400):
                w.topics.put("big", BIG)
            w.hub.flush()
            peer.socket.transport.resume_reading()
            got = [await peer.next() for _ in range(400)]
            assert all(isinstance(message, Notification) for message in got)
            assert got[-1].through == place(400)
            assert w.core.meters.shed == 0

    run(scenario)


def test_a_peer_whose_outbox_is_full_is_closed_and_not_shed():
    async def scenario():
        async with world(**SIZES, peer_outbox_bytes=1_000_000) as w, w.client(max_queue=1, close_timeout=0.1) as peer:
            await peer.login("b2", topic("big"), capabilities=AS_PEER)
            peer.socket.transport.pause_reading()
            for _ in range(400):
                w.topics.put("big", BIG)
                w.hub.flush()
            await eventually(lambda: w.core.closes["slow"] == 1)
            assert w.core.meters.shed == 0
            peer.socket.transport.resume_reading()

    run(scenario)


def test_who_is_cancelled_when_the_peer_answers_is_cancelled():
    async def scenario():
        async with world() as w:
            to_peer = link(w.server.url, None)
            await to_peer.follow("news", None)
            asked = asyncio.create_task(to_peer.follow("sports", None))
            await asyncio.sleep(0)
            (answer,) = to_peer._wire._asked.values()
            answer.set_exception(NotSettled("not here"))
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            await to_peer.close()

    run(scenario)


def link(url: str, tls: ssl.SSLContext | None, backoff_s: float = 0.1, take=lambda _: True) -> PeerLink:
    events = PeerEvents(take, lambda _: None, lambda _: None)
    return PeerLink(
        BrokerInfo("a", url),
        lambda: token_of("b2", AS_PEER),
        events,
        PeerOptions(5.0, backoff_s, backoff_s, 10**6, 2, tls),
    )


def test_a_peer_with_a_certificate_of_a_private_authority_is_trusted_where_that_is_named(certificate):
    async def scenario():
        async with world(tls=tls_context(certificate.chain, certificate.key)) as w:
            stranger, friend = link(w.server.url, None), link(w.server.url, trusting("http.ca_file", certificate.ca))
            with pytest.raises(NotSettled, match="certificate"):
                await stranger.follow("news", None)
            assert await friend.follow("news", None) == place(0)
            await friend.close()

    run(scenario)


def test_a_peer_that_is_away_is_told_once_for_each_reason(caplog):
    async def scenario():
        async with world() as w:
            waiting = link(w.server.url, None, backoff_s=0.001)
            await waiting.follow("news", None)
        await asyncio.sleep(0.1)
        await waiting.close()

    with caplog.at_level(logging.INFO):
        run(scenario)
    told = [record.getMessage() for record in caplog.records if "waits" in record.getMessage()]
    assert told
    assert len(told) == len(set(told))


def test_topics_are_followed_a_few_at_a_time():
    """The time of one that waits for its turn does not run."""

    async def scenario():
        async with world() as w:
            under_way = most = 0
            attach = w.topics.attach
            following = link(w.server.url, None)
            ask = Requests.enqueue

            def counted(self, run):
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                ask(self, run)

            async def answered(target):
                nonlocal under_way
                await asyncio.sleep(0.01)
                under_way -= 1
                return await attach(target)

            await following.follow("first", None)
            w.topics.attach = answered
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Requests, "enqueue", counted)
                await asyncio.gather(*(following.follow(f"topic {n}", None) for n in range(20)))
            assert len(following.topics) == 21
            assert most == 2
            await following.close()

    run(scenario)


def test_a_topic_that_is_followed_again_is_not_given_up_by_what_was_said_before():
    async def scenario():
        async with world() as w:
            got = []
            to_peer = link(w.server.url, None, take=lambda message: got.append(message) or True)
            await to_peer.follow("news", None)
            telling = to_peer.unfollow("news")
            assert not to_peer.topics
            await to_peer.follow("news", None)
            await telling
            w.topics.put("news", b"1")
            await eventually(lambda: [bytes(one.payload) for one in got] == [b"1"])
            await to_peer.unfollow("news")
            await eventually(lambda: w.topics.detached == ["news"])
            await to_peer.close()

    run(scenario)
