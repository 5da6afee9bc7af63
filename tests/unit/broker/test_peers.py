"""Other brokers as clients: their own outbox, and certificates of a private authority."""

import asyncio
import logging
import ssl

import pytest

from broker_world import eventually, place, run, token_of, topic, world
from tocsin.broker.requests import Requests
from tocsin.broker.server import tls_context
from tocsin.broker.upstream.peers import NotSettled, PeerEvents, PeerLink, PeerOptions
from tocsin.errors import Unavailable, Uncertain
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


def link(
    url: str,
    tls: ssl.SSLContext | None,
    backoff_s: float = 0.1,
    take=lambda _: True,
    token=lambda: token_of("b2", AS_PEER),
    timeout_s: float = 5.0,
    refresh_s: float = 900.0,
) -> PeerLink:
    events = PeerEvents(take, lambda _: None, lambda _: None)
    return PeerLink(
        BrokerInfo("a", url),
        token,
        events,
        PeerOptions(timeout_s, backoff_s, backoff_s, 10**6, 2, refresh_s, tls),
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


@pytest.mark.parametrize("way", ["who asked has left", "it takes too long"])
def test_a_topic_that_is_taken_up_when_nobody_waits_for_it_any_more_is_given_up(way):
    async def scenario():
        async with world() as w:
            to_peer = link(w.server.url, None, timeout_s=0.2 if way == "it takes too long" else 5.0)
            may_attach = w.topics.hold_attaching()
            asked = asyncio.create_task(to_peer.follow("news", None))
            await eventually(lambda: any(outlet.session.user for outlet in w.core.outlets))
            if way == "who asked has left":
                await asyncio.sleep(0.05)
                asked.cancel()
            with pytest.raises((asyncio.CancelledError, Unavailable)):
                await asked
            may_attach.set()
            await eventually(lambda: w.topics.detached == ["news"])
            await to_peer.close()

    run(scenario)


def test_a_topic_that_is_asked_for_again_is_followed_though_who_asked_first_has_left():
    async def scenario():
        async with world() as w:
            to_peer = link(w.server.url, None)
            await to_peer.follow("sport", None)
            may_attach = w.topics.hold_attaching()
            first, second = (asyncio.create_task(to_peer.follow("news", None)) for _ in range(2))
            await asyncio.sleep(0.05)
            first.cancel()
            may_attach.set()
            await second
            await asyncio.sleep(0.05)
            assert list(to_peer.topics) == ["sport", "news"]
            assert w.hub["topic:news"].followers == 1
            await to_peer.close()

    run(scenario)


def test_a_link_stays_open_beyond_the_end_of_the_token_that_opened_it():
    async def scenario():
        async with world() as w:
            lives = iter([10, 10, *[1_000] * 1_000])
            to_peer = link(w.server.url, None, refresh_s=0.02, token=lambda: token_of("b2", AS_PEER, ttl_s=next(lives)))
            await to_peer.follow("news", None)
            (outlet,) = w.core.outlets
            begun = outlet.session._ends_at
            await eventually(lambda: outlet.session._ends_at > begun + 500)
            w.core.wheel.advance(w.core.now() + 20)
            await to_peer.follow("sport", None)
            assert list(w.core.outlets) == [outlet]
            await to_peer.close()

    run(scenario)


@pytest.mark.parametrize("way", ["the connection breaks", "it takes too long", "the peer does not know either"])
def test_a_publication_that_was_sent_and_not_answered_is_uncertain(way):
    async def scenario():
        async with world() as w:
            arrived, never = asyncio.Event(), asyncio.Event()

            async def publish(topic, payload, principal):
                arrived.set()
                if way == "the peer does not know either":
                    raise Uncertain("the publication")
                await never.wait()

            w.topics.publish = publish
            to_peer = link(w.server.url, None, timeout_s=0.2 if way == "it takes too long" else 5.0)
            publishing = asyncio.create_task(to_peer.publish("news", b"1"))
            await arrived.wait()
            if way == "the connection breaks":
                for outlet in list(w.core.outlets):
                    outlet.transport.abort()
            with pytest.raises(Uncertain, match="may have been"):
                await publishing
            await to_peer.close()

    run(scenario)


def test_a_publication_that_the_peer_refuses_or_never_gets_was_surely_not_made():
    async def scenario():
        async with world() as w:

            async def publish(topic, payload, principal):
                raise Unavailable("stamped elsewhere")

            w.topics.publish = publish
            to_peer = link(w.server.url, None)
            with pytest.raises(NotSettled, match="elsewhere"):
                await to_peer.publish("news", b"1")
        with pytest.raises(NotSettled):
            await to_peer.publish("news", b"1")
        await to_peer.close()

    run(scenario)
