"""A page at one broker whose user belongs to another: what its browser sends, and what it has to read in the answers.

A browser that goes from one foreign origin to another says ``Origin: null`` from then on, and takes the answer only if
that allows ``null`` (Fetch, HTTP-redirect fetch and CORS check).
"""

import time
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from broker_world import SECRET, run, token_of, world
from tocsin.broker.referring import Referrals, Visitor
from tocsin.clock import SystemClock
from tocsin.protocol.coordination import Placement
from tocsin.protocol.referrals import Referral, issue_referral, read_referral
from tocsin.protocol.tickets import issue_ticket

PAGE, EVIL = "https://page.example", "https://evil.example"
NEWS = '{"kind":"topic","name":"news"}'
QUERY = f"subscribe={quote(NEWS)}&token={token_of('ann')}"


@asynccontextmanager
async def brokers(*, origins=((PAGE,), (PAGE,)), **changed):
    """Two, and a client that follows no redirect by itself; ann belongs to the second one."""
    async with (
        world(name="b1", origins=origins[0], **changed) as a,
        world(name="b2", origins=origins[1], **changed) as b,
        httpx.AsyncClient() as http,
    ):
        a.directory.placed["ann"] = Placement("ann", "b2", b.server.url, 4, "", "nearest")
        yield a, b, http


async def sent_on(http, url, **headers):
    answer = await http.get(url, headers=headers)
    assert answer.status_code == 307
    return answer


async def asked(http, url, origin):
    """Status and headers of an answer of which nothing more is read."""
    async with http.stream("GET", url, headers={"Origin": origin}) as answer:
        return answer.status_code, answer.headers.get("access-control-allow-origin"), answer.headers.get("vary")


def referrals_in(url):
    return parse_qs(urlsplit(url).query).get("referral", [])


def test_a_page_is_redirected_to_where_its_user_belongs():
    async def scenario():
        async with brokers() as (a, b, http):
            answer = await sent_on(http, f"{a.server.url}/events?{QUERY}", Origin=PAGE)
            assert answer.headers["access-control-allow-origin"] == PAGE
            there, word = answer.headers["location"].split("&referral=")
            assert there == f"{b.server.url}/events?{QUERY}"
            told = read_referral(word, SECRET)
            assert (told.origin, told.broker) == (PAGE, "b2")
            assert 0 < told.ends_at - time.time() <= b.settings.redirect_timeout + 1
            async with http.stream("GET", answer.headers["location"], headers={"Origin": "null"}) as answer:
                assert answer.status_code == 200
                assert answer.headers["content-type"] == "text/event-stream"
                assert answer.headers.get_list("access-control-allow-origin") == ["null"]
                assert answer.headers["vary"] == "Origin"
                lines = answer.aiter_lines()
                while await anext(lines) != "event: welcome":
                    pass
                assert {user for user, _ in b.directory.online} == {"ann"}

    run(scenario)


def test_a_page_that_comes_back_by_itself_to_where_it_was_sent_shows_its_origin():
    """As some browsers do: they keep the address behind the redirect, whose referral ends some time."""

    async def scenario():
        async with brokers() as (a, _, http):
            there = (await sent_on(http, f"{a.server.url}/events?{QUERY}", Origin=PAGE)).headers["location"]
            assert await asked(http, there.replace("referral=", "referral=x"), PAGE) == (200, PAGE, "Origin")

    run(scenario)


def test_who_is_redirected_twice_has_one_referral_with_the_first_ones_end():
    async def scenario():
        async with brokers() as (a, b, http):
            b.directory.placed["ann"] = Placement("ann", "b3", "http://b3:1", 5, "", "nearest")
            ends_at = time.time() // 1 + 9
            here = a.core.referrals.refer(Visitor(PAGE, PAGE, ends_at), QUERY + "&last_event_id=e30", "b2")
            answer = await sent_on(http, f"{b.server.url}/events?{here}", **{"Origin": "null", "Last-Event-ID": "e30="})
            assert answer.headers["access-control-allow-origin"] == "null"
            there = answer.headers["location"]
            (word,) = referrals_in(there)
            assert there == f"http://b3:1/events?{QUERY}&last_event_id=e30%3D&referral={word}"
            told = read_referral(word, SECRET)
            assert (told.origin, told.broker, told.ends_at) == (PAGE, "b3", ends_at)

    run(scenario)


def test_who_is_no_page_is_redirected_without_a_word_and_carries_none_on():
    async def scenario():
        async with brokers() as (a, b, http):
            for old in ("", "&referral=x", "&%72eferral=x&referral"):
                answer = await sent_on(http, f"{a.server.url}/events?{QUERY}{old}")
                assert answer.headers["location"] == f"{b.server.url}/events?{QUERY}"
                assert "access-control-allow-origin" not in answer.headers

    run(scenario)


def digest_of(query):
    """As the broker that redirects makes it."""
    (word,) = referrals_in("?" + Referrals("b1", SECRET, SystemClock(), 60, 0).refer(Visitor("", ""), query, "b2"))
    return read_referral(word, SECRET).request


def word_of(secret=SECRET, origin=PAGE, broker="b2", request=digest_of(QUERY), ttl_s=3600):  # noqa: B008
    return issue_referral(secret, Referral(origin, broker, request, time.time() + ttl_s))


@pytest.mark.parametrize(
    ("word", "shown", "status"),
    [
        pytest.param(word_of(), "null", 200, id="a good one"),
        pytest.param(None, "null", 403, id="none"),
        pytest.param("", "null", 403, id="an empty one"),
        pytest.param("a.b.c", "null", 403, id="nonsense"),
        pytest.param(word_of(b"another secret of thirty-two bytes"), "null", 403, id="signed by others"),
        pytest.param(word_of()[:-4] + "AAAA", "null", 403, id="with another signature"),
        pytest.param(word_of(ttl_s=-5), "null", 403, id="past its end"),
        pytest.param(word_of(broker="b3"), "null", 403, id="for another broker"),
        pytest.param(word_of(request=digest_of(QUERY + "&a=")), "null", 403, id="for another request"),
        pytest.param(word_of(origin=EVIL), "null", 403, id="of a page that may not connect here"),
        pytest.param(token_of("ann", ["admin"]), "null", 403, id="a token"),
        pytest.param(issue_ticket(SECRET, "ann", "b2", 4, "n1", 2**33), "null", 403, id="a ticket"),
        pytest.param(word_of(), EVIL, 403, id="beside another origin"),
    ],
)
def test_a_page_without_an_origin_needs_a_referral(word, shown, status):
    async def scenario():
        async with brokers() as (_, b, http):
            url = f"{b.server.url}/events?{QUERY}" + (f"&referral={word}" if word is not None else "")
            found = await asked(http, url, shown)
            assert found == ((200, "null", "Origin") if status == 200 else (status, None, None))
            assert status == 200 or not b.core.outlets

    run(scenario)


def test_a_referral_lets_nobody_in():
    async def scenario():
        async with brokers() as (_, b, http):
            word = word_of(request=digest_of("a=b"))
            for query in (f"a=b&referral={word}", f"token={word}", f"ticket={word}"):
                shown = {"Origin": "null"} if "referral" in query else {}
                answer = await http.get(f"{b.server.url}/events?{query}", headers=shown)
                assert answer.status_code == 401
                assert answer.headers.get("access-control-allow-origin") == shown.get("Origin")

    run(scenario)


def test_what_is_asked_may_be_written_in_another_way():
    async def scenario():
        async with brokers() as (a, _, http):
            there = (await sent_on(http, f"{a.server.url}/events?{QUERY}", Origin=PAGE)).headers["location"]
            again = there.replace("subscribe=%7B", "sub%73cribe=%7b")
            assert again != there
            assert (await asked(http, again, "null"))[0] == 200

    run(scenario)


def test_without_tokens_it_goes_the_same_way():
    async def scenario():
        async with brokers(insecure=True) as (a, b, http):
            a.directory.placed["local"] = Placement("local", "b2", b.server.url, 4, "", "nearest")
            there = (await sent_on(http, f"{a.server.url}/events", Origin=PAGE)).headers["location"]
            assert await asked(http, there, "null") == (200, "null", "Origin")
            assert (await asked(http, there.split("?")[0], "null"))[0] == 403

    run(scenario)


def test_who_is_allowed_without_an_origin_needs_no_referral():
    async def scenario():
        async with brokers(origins=((PAGE,), ("null",))) as (_, b, http):
            for word in ("", word_of()):
                url = f"{b.server.url}/events?{QUERY}&referral={word}"
                assert await asked(http, url, "null") == (200, "null", "Origin")

    run(scenario)


def test_without_a_secret_there_are_no_referrals():
    mute = Referrals("b2", None, SystemClock(), 60, 0)
    assert mute.refer(Visitor(PAGE, PAGE), "a=b&referral=x", "b3") == "a=b"
    assert mute.visitor("null", f"{QUERY}&referral={word_of()}") == Visitor("null", "null")
