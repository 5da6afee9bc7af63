"""What the broker's port serves beside WebSockets: events and plain HTTP."""

import asyncio
import base64
import json
import ssl
from urllib.parse import quote

import httpx
import msgspec
import pytest
import uvloop

from broker_world import closed, place, token_of, topic, world
from support.sse import Events
from tocsin.broker.server import tls_context
from tocsin.errors import Unavailable
from tocsin.protocol.codes import BAD_MESSAGE
from tocsin.protocol.coordination import BrokerInfo, Placement
from tocsin.protocol.messages import SUBPROTOCOL, Failed, Login, Publish, Published

NEWS = '{"kind":"topic","name":"news"}'


def run(scenario):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(scenario(), 30))


def bearer(user="ann", *capabilities):
    return {"Authorization": f"Bearer {token_of(user, capabilities or ('topic:*', 'publish:*'))}"}


async def eventually(holds):
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to hold")


def test_events_carry_positions_and_resume_from_the_last_id():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            asked = {"subscribe": [NEWS, '{"kind":"topic","name":"sport"}'], "token": token_of("ann")}
            async with http.stream("GET", "/events", params=asked) as response:
                assert response.headers["content-type"] == "text/event-stream"
                events = Events(response)
                kind, welcome, _ = await events.next()
                assert (kind, {s["stream"] for s in welcome["subscriptions"]}) == (
                    "welcome",
                    {"topic:news", "topic:sport"},
                )
                w.topics.put("news", b'{"a":\n1}')
                w.topics.put("sport", b"2")
                got = [await events.next(), await events.next()]
                assert {d["stream"]: d["payload"] for _, d, _ in got} == {"topic:news": {"a": 1}, "topic:sport": 2}
                last = got[-1][2]
            await eventually(lambda: not w.directory.online)
            w.topics.put("news", b"3")
            headers = {"Last-Event-ID": last, **bearer()}
            async with http.stream("GET", "/events", headers=headers) as response:
                events = Events(response)
                await events.next()
                _, data, _ = await events.next()
                assert (data["payload"], data["through"]) == (3, place(2))
                w.core.wheel.advance(w.core.now() + w.settings.heartbeat + 2)
                w.topics.put("sport", b"4")
                assert (await events.next())[1]["payload"] == 4

    run(scenario)


def test_nothing_is_said_for_its_own_sake_to_who_does_not_read():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            asked = {"subscribe": NEWS, "token": token_of("ann")}
            async with http.stream("GET", "/events", params=asked) as response:
                lines = response.aiter_lines()
                while await anext(lines) != "event: welcome":
                    pass
                (outlet,) = w.core.outlets
                outlet.pause_writing()  # as its transport does when the client does not read
                for pause in range(1, 6):
                    w.core.wheel.advance(w.core.now() + pause * (w.settings.heartbeat + 2))
                outlet.resume_writing()
                w.topics.put("news", b"1")
                said = []
                while "event: notification" not in said:
                    said.append(await anext(lines))
                assert ":" not in said

    run(scenario)


@pytest.mark.parametrize("is_slow", [True, False], ids=["ended as slow", "half-closed"])
def test_an_event_stream_that_is_over_and_not_read_is_cut(is_slow):
    async def scenario():
        sizes = {"write_buffer": 4_000, "outbox_bytes": 100_000, "outbox_hard_bytes": 300_000 if is_slow else 10**9}
        async with world(**sizes) as w:
            reader, writer = await asyncio.open_connection("127.0.0.1", w.server.port, limit=1_000)
            writer.write(f"GET /events?subscribe={quote(NEWS)}&token={token_of('ann')} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"welcome")
            (outlet,), looked_at = w.core.outlets, w.core.now() + w.settings.login_timeout + 2
            now = w.core.now
            w.core.now = lambda: now() + 5  # so the connection is looked at before its time has come
            for _ in range(400):
                w.topics.put("news", b'"' + b"x" * 50_000 + b'"')
                await asyncio.sleep(0)
            if not is_slow:
                writer.write_eof()
            await eventually(lambda: outlet.is_over)
            w.core.wheel.advance(looked_at)
            await asyncio.sleep(0)
            assert outlet in w.core.outlets
            w.core.wheel.advance(w.core.now() + w.settings.login_timeout + 2)
            await eventually(lambda: not w.core.outlets)
            writer.close()

    run(scenario)


def test_an_event_that_waited_behind_others_has_the_positions_that_they_brought():
    """A client that comes back with its id is not sent them again."""

    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            asked = {"subscribe": [NEWS, '{"kind":"topic","name":"sport"}'], "token": token_of("ann")}
            async with http.stream("GET", "/events", params=asked) as response:
                events = Events(response)
                await events.next()
                (outlet,) = w.core.outlets
                outlet.pause_writing()  # as its transport does when the client does not read
                for payload in (b"1", b"2", b"3"):
                    w.topics.put("news", payload)
                w.hub.end("topic:sport", "dropped", "it is no more")
                outlet.resume_writing()
                got = [await events.next() for _ in range(4)]
                assert [kind for kind, _, _ in got] == ["notification"] * 3 + ["ended"]
                places = [json.loads(base64.urlsafe_b64decode(id)) for _, _, id in got]
                assert [at["topic:news"] for at in places] == [place(1), place(2), place(3), place(3)]

    run(scenario)


def test_a_gap_that_leads_back_leads_the_ids_back_when_it_leaves():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            w.topics.put("news", b"1")
            headers = {
                "Last-Event-ID": base64.urlsafe_b64encode(json.dumps({"topic:news": place(7)}).encode()).decode()
            }
            asked = {"subscribe": NEWS, "token": token_of("ann")}
            async with http.stream("GET", "/events", params=asked, headers=headers) as response:
                events = Events(response)
                got = [await events.next(), await events.next()]
                assert [kind for kind, _, _ in got] == ["welcome", "gap"]
                assert json.loads(base64.urlsafe_b64decode(got[1][2])) == {"topic:news": place(1)}

    run(scenario)


def test_more_streams_than_fit_into_an_events_id_are_refused_before_they_are_held():
    async def scenario():
        async with world(sse_id_bytes=600) as w, httpx.AsyncClient(base_url=w.server.url) as http:
            targets = [json.dumps({"kind": "topic", "name": f"topic {n}"}) for n in range(8)]
            answer = await http.get("/events", params={"subscribe": targets}, headers=bearer())
            assert answer.status_code == 429
            assert "broker.sse_id_bytes" in answer.json()["detail"]
            assert not w.directory.kept
            fits = {"subscribe": [*targets[:7], targets[0]]}
            async with http.stream("GET", "/events", params=fits, headers=bearer()) as response:
                assert response.status_code == 200
                events = Events(response)
                await events.next()
                w.topics.put("topic 0", b"1")
                _, _, id = await events.next()
                assert len(base64.urlsafe_b64decode(id)) > 7 * len('"topic:topic 0":""')
                assert len(id) <= 600

    run(scenario)


def test_events_of_another_brokers_user_are_redirected_there():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            w.directory.placed["ann"] = Placement("ann", "b2", "http://b2:1", 4, "", "nearest")
            answer = await http.get("/events?subscribe=x%7B", headers=bearer())
            assert answer.status_code == 400
            answer = await http.get("/events?a=b", headers={"Last-Event-ID": "e30=", **bearer()})
            assert answer.status_code == 307
            assert answer.headers["location"] == "http://b2:1/events?a=b&last_event_id=e30%3D"

    run(scenario)


def test_a_move_ends_an_event_stream():
    async def scenario():
        async with (
            world() as w,
            httpx.AsyncClient(base_url=w.server.url) as http,
            http.stream("GET", "/events", params={"subscribe": NEWS}, headers=bearer()) as response,
        ):
            events = Events(response)
            await events.next()
            await w.residents.send("ann", 2, BrokerInfo("b2", "http://b2:1"), "T")
            kind, data, _ = await events.next()
            assert (kind, data["url"]) == ("move", "http://b2:1")
            assert (await events.next())[1]["code"] == 4100
            with pytest.raises(StopAsyncIteration):
                await events.next()

    run(scenario)


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        pytest.param({}, "", 401, id="nobody is anonymous"),
        pytest.param({"Authorization": "Bearer x"}, "", 401, id="a bad token"),
        pytest.param(bearer() | {"Last-Event-ID": "!"}, "", 400, id="an id of nobody's"),
        pytest.param(bearer() | {"Origin": "https://evil.example"}, "", 403, id="a page of another origin"),
    ],
)
def test_events_that_do_not_begin(headers, query, status):
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            assert (await http.get(f"/events{query}", headers=headers)).status_code == status
            await eventually(lambda: not w.core.outlets)
            assert not w.directory.online

    run(scenario)


OPENING = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
OPENING |= {"Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(), "Sec-WebSocket-Protocol": SUBPROTOCOL}


@pytest.mark.parametrize(("path", "headers", "status"), [("/connect", OPENING, 101), ("/events", {}, 200)])
@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        pytest.param("127.0.0.1", True, id="this machine by number"),
        pytest.param("localhost:8430", True, id="this machine by name"),
        pytest.param("evil.example:8430", False, id="a foreign name that leads here"),
    ],
)
def test_without_tokens_only_a_loopback_host_is_served(path, headers, status, host, is_own):
    async def scenario():
        async with (
            world(insecure=True) as w,
            httpx.AsyncClient(base_url=w.server.url) as http,
            http.stream("GET", path, params={"subscribe": NEWS}, headers={**headers, "Host": host}) as answer,
        ):
            assert answer.status_code == (status if is_own else 403)
            assert is_own or not w.core.outlets

    run(scenario)


def test_without_tokens_a_request_that_names_no_host_or_two_is_not_served():
    async def scenario():
        for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n", "Host: evil.example\r\nHost: localhost\r\n"):
            async with world(insecure=True) as w:
                reader, writer = await asyncio.open_connection("127.0.0.1", w.server.port)
                writer.write(f"GET /events HTTP/1.1\r\n{hosts}\r\n".encode())
                assert (await reader.readline()).split()[1] == b"403"
                writer.close()

    run(scenario)


def test_publishing_over_http():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http, w.client() as ann:
            await ann.login("ann", topic("a/b"))
            answer = await http.post("/topics/a/b/messages", headers=bearer("bob"), content=b'{"x": [1, 2]}')
            assert answer.json() == {"topic": "a/b", "position": place(1)}
            assert bytes((await ann.next()).payload) == b'{"x": [1, 2]}'
            refused = {
                401: await http.post("/topics/a/messages", content=b"1"),
                403: await http.post("/topics/a/messages", headers=bearer("bob", "publish:b"), content=b"1"),
                400: await http.post("/topics/a/messages", headers=bearer(), content=b"{"),
                413: await http.post("/topics/a/messages", headers=bearer(), content=b'"' + b"x" * 300_000 + b'"'),
            }
            for status, answer in refused.items():
                assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
                assert answer.json()["status"] == status

    run(scenario)


def test_publishing_over_http_is_held_to_the_rate_of_a_connection():
    async def scenario():
        async with world(max_messages_per_s=0.5) as w, httpx.AsyncClient(base_url=w.server.url) as http:

            async def post(*who):
                return await http.post("/topics/a/messages", headers=bearer(*who), content=b"1")

            assert (await post("ann")).status_code == 200
            refused = await post("ann")
            assert (refused.status_code, refused.json()["type"]) == (429, "urn:tocsin:too-many-requests")
            assert 1 <= int(refused.headers["Retry-After"]) <= 2
            assert (await post("bob")).status_code == 200
            for _ in range(2):
                assert (await post("broker_2", "broker:broker_2", "publish:*")).status_code == 200
            assert len(w.topics.log["topic:a"]) == 4

    run(scenario)


def test_a_connection_that_served_http_can_become_an_event_stream():
    async def scenario():
        async with world() as w:
            reader, writer = await asyncio.open_connection("127.0.0.1", w.server.port)
            for _ in range(2):
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b"alive" in await reader.readuntil(b"}")
            writer.write(f"GET /events?token={token_of('ann')} HTTP/1.1\r\nHost: localhost\r\n".encode())
            await asyncio.sleep(0.05)
            writer.write(b"\r\n")
            assert b"text/event-stream" in await asyncio.wait_for(reader.readuntil(b"event: welcome"), 10)
            writer.close()
            await eventually(lambda: not w.core.outlets)

    run(scenario)


UNDECODABLE = [b"1e999", b'{"a": [-1e400]}', b"1" * 5000, b"1" * 400 + b".5", b"[" * 101 + b"]" * 101]


@pytest.mark.parametrize("payload", UNDECODABLE, ids=lambda payload: payload[:16].decode())
def test_a_value_that_not_every_client_could_decode_is_refused(payload):
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http, w.client() as ann:
            answer = await http.post("/topics/news/messages", headers=bearer(), content=payload)
            assert (answer.status_code, "within a double" in answer.json()["detail"]) == (400, True)
            await ann.login("ann")
            refused = await ann.ask(Publish(2, "news", msgspec.Raw(payload)))
            assert (type(refused), refused.code) == (Failed, "bad-argument")
            for good in (b"1e-999", b'{"a":' * 100 + b"1" + b"}" * 100, b"[" + b"[]," * 500 + b'"["]'):
                assert isinstance(await ann.ask(Publish(3, "news", msgspec.Raw(good))), Published)
            assert [at for at, _ in w.topics.log["topic:news"]] == [place(1), place(2), place(3)]

    run(scenario)


@pytest.mark.parametrize("session", ["s" * 5000, "a\nb", "\x00", "\u00e9" * 200], ids=lambda name: ascii(name)[:8])
def test_a_session_goes_by_the_rule_of_names_however_it_comes(session):
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http, w.client() as ann:
            answer = await http.get("/events", params={"session": session, "subscribe": NEWS}, headers=bearer())
            assert (answer.status_code, "255 bytes" in answer.json()["detail"]) == (400, True)
            await ann.say(Login(1, token_of("ann"), session=session))
            assert await closed(ann) == BAD_MESSAGE.number
            assert "ann" not in w.core.users

    run(scenario)


def test_a_request_with_two_lengths_is_refused_on_the_brokers_port_too():
    async def scenario():
        async with world() as w:
            reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(w.server.url).port)
            lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked"
            writer.write(f"POST /topics/news/messages HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\n0\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert answer.startswith(b"HTTP/1.1 400")
            assert answer.count(b"HTTP/1.1 ") == 1

    run(scenario)


def test_notices_reach_the_upstream():
    async def scenario():
        async with world() as w, httpx.AsyncClient(base_url=w.server.url) as http:
            assert (await http.post("/notify", headers=bearer("cluster", "notify"), content=b"{}")).status_code == 204
            refused = await http.post("/notify", headers=bearer("ann", "topic:*", "publish:*", "read"), content=b"{}")
            assert (refused.status_code, "'notify'" in refused.json()["detail"]) == (403, True)
            assert w.topics.log["noticed"] == [("cluster", b"{}")]
            assert (await http.post("/notify", content=b"{}")).status_code == 401

    run(scenario)


def test_what_supervisors_ask():
    async def scenario():
        async with world(drain_timeout=0.0) as w, httpx.AsyncClient(base_url=w.server.url) as http, w.client() as ann:
            await ann.login("ann")
            assert (await http.get("/healthz")).json() == {"alive": True}
            assert (await http.get("/readyz")).json() == {"ready": True}
            w.directory.refused = "its name is taken"
            assert "its name is taken" in (await http.get("/readyz")).json()["detail"]
            w.directory.refused = None
            assert (await http.get("/version")).json()["broker"] == "broker_1"
            assert (await http.get("/metrics")).status_code == 401
            text = (await http.get("/metrics", headers=bearer("ops", "read"))).text
            assert "tocsin_broker_connections 1.0" in text
            described = (await http.get("/openapi.json")).json()["paths"]
            assert {"/topics/{topic}/messages", "/events", "/notify"} <= described.keys()
            assert "requestBody" in described["/topics/{topic}/messages"]["post"]
            assert (await http.get("/nowhere")).json()["type"] == "urn:tocsin:no-such-route"
            assert (await http.get("/connected")).status_code == 404
            await w.server.drain(w.residents, asyncio.Event())
            assert (await http.get("/readyz")).status_code == 503

    run(scenario)


def test_everything_over_tls(certificate):
    trusting = ssl.create_default_context(cafile=certificate.ca)

    async def scenario():
        async with (
            world(tls=tls_context(certificate.chain, certificate.key)) as w,
            httpx.AsyncClient(base_url=w.server.url, verify=trusting) as http,
            w.client(ssl=trusting) as ann,
        ):
            assert w.server.url.startswith("https://")
            await ann.login("ann", topic("news"))
            answer = await http.post("/topics/news/messages", headers=bearer("bob"), content=b"1")
            assert answer.status_code == 200
            assert (await ann.next()).through == place(1)
            async with http.stream("GET", "/events", headers=bearer()) as response:
                assert (await Events(response).next())[0] == "welcome"

    run(scenario)


def test_a_certificate_that_cannot_be_used_is_told():
    with pytest.raises(Unavailable, match=r"nowhere\.pem"):
        tls_context("nowhere.pem", "nowhere.key")
