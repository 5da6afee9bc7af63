"""What counts as taken on an event stream, whose client never says what it has."""

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import httpx
import pytest

from broker_world import START, eventually, place, run, token_of, topic, world
from support.sse import Events
from tocsin.broker.sse import EventStream
from tocsin.protocol.codes import GOING_AWAY
from tocsin.protocol.coordination import BrokerInfo
from tocsin.protocol.messages import Ack, Ping, Pong

STREAM = "topic:news"
ASKED = {"subscribe": '{"kind":"topic","name":"news"}', "token": token_of("ann", ttl_s=3600)}


@asynccontextmanager
async def page(w, last=None):
    """A page that is loaded, and read up to the welcome."""
    headers = {"Last-Event-ID": last} if last else {}
    async with (
        httpx.AsyncClient(base_url=w.server.url) as http,
        http.stream("GET", "/events", params=ASKED, headers=headers) as answer,
    ):
        events = Events(answer)
        await events.next()
        yield events


async def gone(w):
    await eventually(lambda: not w.directory.online)


def put(w, *payloads):
    for payload in payloads:
        w.topics.put("news", str(payload).encode())


async def payloads(events, count):
    return [(await events.next())[1]["payload"] for _ in range(count)]


def acked(w):
    """By subscription, the last that the coordinator is told."""
    return {id: position for _, id, position in w.directory.acks}


def standing(w):
    return {id: subscription.acked for id, subscription in w.core.users["ann"].subscriptions.items()}


def test_a_page_that_is_loaded_anew_goes_on_behind_what_it_was_sent():
    async def scenario():
        async with world() as w:
            async with page(w) as events:
                put(w, 1, 2)
                assert await payloads(events, 2) == [1, 2]
                assert not w.directory.acks  # not by event
            await gone(w)
            assert list(acked(w).values()) == [place(2)]
            put(w, 3)
            async with page(w) as events:
                assert await payloads(events, 1) == [3]

    run(scenario)


def test_it_does_so_though_its_old_connection_still_stands():
    async def scenario():
        async with world() as w, page(w) as old:
            put(w, 1, 2)
            await payloads(old, 2)
            async with page(w) as events:
                put(w, 3)
                assert await payloads(events, 1) == [3]
                assert await payloads(old, 1) == [3]

    run(scenario)


def test_an_id_that_is_given_decides_though_more_was_sent():
    async def scenario():
        async with world() as w:
            async with page(w) as events:
                put(w, 1, 2, 3)
                _, _, first = await events.next()
                await payloads(events, 2)
            await gone(w)
            async with page(w, first) as events:
                assert await payloads(events, 2) == [2, 3]
            await gone(w)
            assert list(standing(w).values()) == [place(3)]

    run(scenario)


def test_an_id_that_is_given_counts_as_taken_itself():
    """What left at another broker, which did not live to tell it."""

    async def scenario():
        async with world() as w:
            async with page(w):
                pass
            await gone(w)
            put(w, 1, 2, 3)
            async with page(w, base64.urlsafe_b64encode(json.dumps({STREAM: place(3)}).encode()).decode()):
                pass
            await gone(w)
            assert list(standing(w).values()) == [place(3)]

    run(scenario)


def test_a_heartbeat_notes_what_left():
    async def scenario():
        async with world() as w, page(w) as events:
            for number in (1, 2):
                put(w, number)
                await payloads(events, 1)
                w.core.wheel.advance(w.core.now() + number * (w.settings.heartbeat + 2))
                assert list(acked(w).values()) == [place(number)]
            told = list(w.directory.acks)
            w.core.wheel.advance(w.core.now() + 3 * (w.settings.heartbeat + 2))
            assert w.directory.acks == told

    run(scenario)


@pytest.mark.parametrize("how", ["left", "moved", "ended"])
def test_what_left_is_noted_however_the_stream_ends(how):
    async def scenario():
        async with world() as w:
            async with page(w) as events:
                put(w, 1)
                await payloads(events, 1)
                if how == "moved":
                    await w.residents.send("ann", 2, BrokerInfo("b2", "http://b2:1"), "T")
                elif how == "ended":
                    next(iter(w.core.outlets)).end(GOING_AWAY)
            await gone(w)
            assert list(acked(w).values()) == [place(1)]

    run(scenario)


def test_nothing_is_noted_that_did_not_leave():
    async def scenario():
        async with world() as w:
            async with page(w) as events:
                put(w, 1)
                await payloads(events, 1)
                next(iter(w.core.outlets)).pause_writing()  # as its transport does when the client does not read
                put(w, 2, 3)
                w.core.wheel.advance(w.core.now() + w.settings.heartbeat + 2)
                assert list(acked(w).values()) == [place(1)]
            await gone(w)
            assert list(acked(w).values()) == [place(1)]
            async with page(w) as events:
                assert await payloads(events, 2) == [2, 3]

    run(scenario)


def test_what_waits_in_our_own_buffer_has_not_left():
    async def scenario():
        async with world(write_buffer=1_000_000) as w, page(w) as events:
            put(w, 1)
            await payloads(events, 1)
            (outlet,) = w.core.outlets
            outlet.note_taken()
            number = 1
            while not outlet.transport.get_write_buffer_size():  # the client does not read
                number += 1
                w.topics.put("news", b'"%s"' % (b"x" * 10_000))
                await asyncio.sleep(0)
            assert number > 2
            outlet.note_taken()
            assert list(acked(w).values()) == [place(1)]

    run(scenario)


def test_a_place_where_the_stream_never_was_is_not_noted_when_the_stream_gets_there():
    """The gap that leads back waits in the outbox, with what comes after it."""

    async def scenario():
        async with world() as w:
            put(w, 1)
            w.topics.is_away = True  # so nobody can tell yet that the client is ahead of everyone
            async with page(w, base64.urlsafe_b64encode(json.dumps({STREAM: place(4)}).encode()).decode()):
                next(iter(w.core.outlets)).pause_writing()
                w.topics.is_away = False
                await eventually(lambda: w.core.meters.gaps == 1)
                put(w, 2, 3, 4, 5)
            await gone(w)
            assert list(standing(w).values()) == [place(1)]

    run(scenario)


def test_beside_a_websocket_of_the_user_places_go_forward_only():
    async def scenario():
        async with world() as w, w.client() as phone:
            await phone.login("ann", topic("news"))
            async with page(w) as events:
                (outlet,) = [o for o in w.core.outlets if isinstance(o, EventStream)]
                (other,) = standing(w).keys() - {"news"}
                outlet.pause_writing()
                put(w, 1, 2, 3)
                await phone.say(Ack({STREAM: place(3)}))
                await eventually(lambda: standing(w)["news"] == place(3))
                outlet.note_taken()
                assert standing(w) == {"news": place(3), other: START}
                outlet.resume_writing()
                assert await payloads(events, 3) == [1, 2, 3]
                put(w, 4)
                await payloads(events, 1)
            await eventually(lambda: standing(w) == {"news": place(4), other: place(4)})
            await phone.say(Ack({STREAM: place(2)}))
            await phone.say(Ping(2))
            while not isinstance(await phone.next(), Pong):
                pass
            assert standing(w) == {"news": place(4), other: place(4)}
            news = [position for _, id, position in w.directory.acks if id == "news"]
            assert news == [place(3), place(4)]

    run(scenario)


def test_a_stream_that_is_replaced_before_it_began_is_answered():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            go_on = w.topics.hold_attaching()
            asked = http.build_request("GET", "/events", params={**ASKED, "session": "mine"})
            first = asyncio.create_task(http.send(asked))
            await eventually(lambda: "ann" in w.core.users and len(w.core.users["ann"].sessions) == 1)
            second = asyncio.create_task(http.send(asked, stream=True))
            answer = await first
            assert (answer.status_code, answer.json()["type"]) == (409, "urn:tocsin:replaced")
            go_on.set()
            stream = await second
            assert (await Events(stream).next())[0] == "welcome"
            await stream.aclose()

    run(scenario)
