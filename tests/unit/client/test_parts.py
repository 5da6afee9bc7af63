"""The small parts of the client."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from typing import Any

import httpx
import msgspec
import pytest

from support.scripted import Broker, Peer, broker, notification, stands
from tocsin.client import JAVASCRIPT, BrokerRefused, Session, channel, connect, default_id, topic
from tocsin.client.arguments import as_json, wanted
from tocsin.client.credentials import Credentials, claims, lasts_s, subject
from tocsin.client.placing import PlacementRefused, _read, place
from tocsin.client.wire import socket_url
from tocsin.config import Client
from tocsin.errors import BadArgument, Unauthenticated, Unavailable
from tocsin.tokens import mint

SECRET = b"a secret of more than thirty-two bytes"


def test_a_token_tells_whom_it_names_and_how_long_it_lasts() -> None:
    token = mint(SECRET, "änn", ["read"], 600, now=1000.0)
    assert subject(token) == "änn"
    assert lasts_s(token, now=1100.0) == 500.0


@pytest.mark.parametrize("token", [None, "", "opaque", "a.b", "a.!!.c", "a.bnVsbA.c", "a.W10.c", "é.é.é"])
def test_what_is_no_json_web_token_tells_nothing(token: str | None) -> None:
    assert (claims(token), subject(token), lasts_s(token)) == ({}, None, None)


def test_a_token_is_a_text_or_a_function_of_either_kind() -> None:
    async def later() -> str:
        return "later"

    given = [Credentials(source, 1.0) for source in (None, "text", lambda: "now", later)]
    assert [asyncio.run(one.token()) for one in given] == [None, "text", "now", "later"]
    assert [one.can_renew for one in given] == [False, False, True, True]


def test_a_function_that_gives_no_text_is_an_error() -> None:
    with pytest.raises(BadArgument, match="a function that gives a text"):
        asyncio.run(Credentials(lambda: 7, 1.0).token())  # type: ignore[arg-type, return-value]


def test_equal_targets_have_equal_ids_however_they_are_written() -> None:
    assert default_id(channel("Near", x=1, y=2)) == default_id(channel("Near", y=2, x=1))
    assert len({default_id(t) for t in (channel("Near", x=1), channel("Near", x=2), topic("Near"))}) == 3


@pytest.mark.parametrize(
    ("python", "javascript"),
    [
        (topic("news"), 'topic("news")'),
        (channel("Near", kind="fire", x=0.5, who="Ä"), 'channel("Near", {x: 0.5, who: "Ä", kind: "fire"})'),
        (channel("Fires", 7, None, True), 'channel("Fires", [7, null, true])'),
        (topic("x" * 39 + "\U0001f525 fires"), 'topic("x".repeat(39) + "\U0001f525 fires")'),
    ],
)
def test_both_clients_choose_the_same_id(python: object, javascript: str, node: str) -> None:
    script = f"""
        import {{ channel, defaultId, topic }} from {JAVASCRIPT.as_uri()!r};
        console.log(defaultId({javascript}));
    """
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == default_id(python), done.stderr  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [5, "x" * 65], ids=["no text", "too long"])
def test_positions_of_an_earlier_session_are_texts(position: object) -> None:
    with pytest.raises(BadArgument, match="positions"):
        connect(broker="http://127.0.0.1:1", positions={"n": position})  # type: ignore[dict-item]


def test_null_and_what_is_json_already_can_be_sent() -> None:
    assert bytes(as_json("payload", [None, msgspec.Raw(b'{"a":null}')])) == b'[null,{"a":null}]'


def test_what_is_asked_for_stays_as_it_was_asked() -> None:
    places = [1, 2]
    asked = wanted(None, channel("Near", places), None)
    places.append(3)
    assert default_id(asked.target) == default_id(channel("Near", [1, 2]))
    assert asked.id == default_id(channel("Near", [1, 2]))


def test_arguments_are_by_name_or_in_order() -> None:
    with pytest.raises(BadArgument, match="all in order or all by name"):
        channel("Near", 1, x=2)
    with pytest.raises(BadArgument, match="topic"):
        topic(" news")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1", "ws://h:1/connect"),
        ("https://h/", "wss://h/connect"),
        ("https://h/brokers/1/", "wss://h/brokers/1/connect"),
        ("ws://h:1", "ws://h:1/connect"),
    ],
)
def test_where_a_brokers_socket_is(url: str, expected: str) -> None:
    assert socket_url(url) == expected


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (401, b'{"detail": "expired"}', Unauthenticated),
        (404, b"<html>", PlacementRefused),
        (429, b"{}", Unavailable),
        (503, b"[]", Unavailable),
        (200, b"{}", Unavailable),
        (200, b"hello", Unavailable),
    ],
)
def test_what_a_coordinators_answer_means(status: int, content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        _read(httpx.Response(status, content=content), "http://c")


def test_an_address_is_needed() -> None:
    with pytest.raises(BadArgument, match="coordinator or of a broker"):
        connect()


def test_the_client_needs_nothing_but_the_base_installation() -> None:
    heavy = ("pyspark", "pyarrow", "numpy", "fastapi", "uvicorn", "uvloop", "sqlglot")
    script = f"import sys, tocsin.client.sync, tocsin.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


async def entered(scripted: Broker, **options: Any) -> tuple[Session, Peer]:
    """A session that has logged in, and its connection as the broker sees it."""
    session = connect(broker=scripted.url, **options)
    entering = asyncio.create_task(session.__aenter__())
    peer = await scripted.peer()
    await peer.welcome()
    await entering
    return session, peer


def test_the_events_of_a_session_end_with_what_ended_a_subscription() -> None:
    async def tell() -> list[object]:
        async with broker() as scripted:
            session, peer = await entered(scripted, settings=Client(backoff_min=0.01, backoff_max=0.01))
            session.topic("a", id="a")
            session.topic("b", id="b")
            await peer.subscribed("topic:a", "0")
            await peer.subscribed("topic:b", "0")
            await peer.send(notification("topic:a", "0", "1"), notification("topic:b", "0", "1"))
            events = session.events()
            seen: list[object] = [(await anext(events)).subscription for _ in range(2)]
            peer.abort()
            again = await scripted.peer()
            login = await again.next("login")
            standing = stands(login["subscriptions"][1], "topic:b", "1")
            gone = {"id": "a", "code": "not-found", "detail": "it was dropped"}
            await again.welcome(standing, login=login, refused=[gone])
            with pytest.raises(BrokerRefused, match="it was dropped"):
                await anext(events)
            await again.send(notification("topic:b", "1", "2"))
            async for item in session.events():
                seen.append(item.through)
                break
            await scripted.stop()
            await session.close()
            return seen

    assert asyncio.run(tell()) == ["a", "b", "2"]


def test_the_events_of_a_session_come_in_turn() -> None:
    async def tell() -> list[str]:
        async with broker() as scripted:
            session, peer = await entered(scripted)
            for name in ("a", "b"):
                standing = session.topic(name, id=name)
                await peer.subscribed(f"topic:{name}", "0")
                await standing
                for at in range(3):
                    await peer.send(notification(f"topic:{name}", str(at), str(at + 1)))
            asked = asyncio.create_task(session.held())
            await peer.send(
                {"type": "subscriptions", "request": (await peer.next("list"))["request"], "subscriptions": []}
            )
            await asked
            events = session.events()
            seen = [(await anext(events)).subscription for _ in range(6)]
            await scripted.stop()
            await session.close()
            return seen

    assert asyncio.run(tell()) == ["a", "b", "a", "b", "a", "b"]


def test_a_subscription_that_is_over_takes_nothing_of_a_later_one_with_its_id() -> None:
    async def tell() -> None:
        async with broker() as scripted:
            session, peer = await entered(scripted)
            refused = session.topic("news", id="n")
            number = (await peer.next("subscribe"))["request"]
            await peer.send({"type": "error", "request": number, "code": "forbidden", "detail": "may not"})
            with pytest.raises(BrokerRefused, match="may not"):
                await refused
            ended = session.topic("news", id="n")
            await peer.subscribed("topic:news", "0")
            await asyncio.gather(ended.unsubscribe(), peer.done("unsubscribe"))
            standing = session.topic("news", id="n")
            await peer.subscribed("topic:news", "0")
            await peer.send(notification("topic:news", "0", "1"), notification("topic:news", "1", "2"))
            assert (await anext(standing)).through == "1"
            with pytest.raises(BrokerRefused, match="may not"):
                await anext(refused)
            with pytest.raises(StopAsyncIteration):
                await anext(ended)
            assert (await anext(standing)).through == "2"
            await scripted.stop()
            await session.close()

    asyncio.run(tell())


@pytest.mark.parametrize(("scheme", "at_most"), [("http", 0), ("https", 1)])
def test_authorities_are_read_once_and_only_where_a_certificate_comes(
    monkeypatch: pytest.MonkeyPatch, scheme: str, at_most: int
) -> None:
    """Reading them is most of what a placement costs."""
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda *args, **named: (read.append(args), load(*args, **named))
    )
    for _ in range(3):
        with pytest.raises(Unavailable):
            asyncio.run(place(f"{scheme}://127.0.0.1:1", "ann", None, None, 5.0))
    assert len(read) <= at_most
