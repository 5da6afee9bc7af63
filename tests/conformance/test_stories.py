"""What every client does, told as stories against a broker that says exactly what each needs."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import pytest

from conformance.drivers import Refused
from conformance.stories import NEWS, S, World, story
from support.scripted import Peer, gap, notification, stands
from tocsin.protocol import codes


async def resumed(peer: Peer, stream: str = S, **more: Any) -> dict[str, Any]:
    """Welcome a client where it stands; its login."""
    login = await peer.next("login")
    told = [stands(wanted, stream, wanted.get("position", "0")) for wanted in login["subscriptions"]]
    await peer.welcome(*told, login=login, **more)
    return login


def token(lasts_s: float, name: str = "ann") -> str:
    body = json.dumps({"sub": name, "exp": time.time() + lasts_s}).encode()
    return f"h.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.s"


async def arrived(world: World, peer: Peer) -> None:
    """Wait until the client has everything that was sent before."""
    asked = asyncio.create_task(world.client.ask("publish", topic="t", payload=1))
    await peer.send({"type": "published", "request": (await peer.next("publish"))["request"], "position": "1"})
    await asked


# --- login, notifications, positions --------------------------------------------------------------


@story
async def test_a_login_shows_the_token_and_the_session(world: World) -> None:
    asked = asyncio.create_task(world.begin(token="secret", session="mine"))
    login = await resumed(await world.a.peer())
    assert await asked == {"user": "ann", "broker": "b"}
    assert (login["token"], login["session"]) == ("secret", "mine")
    assert not login.get("subscriptions")


@story
async def test_notifications_come_once_and_in_order(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"), notification(S, "2", "3"))
    assert await world.client.items(3) == [("1", "1"), ("2", "2"), ("3", "3")]


@story
async def test_a_notification_that_reaches_over_what_is_known_is_taken(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "2"), notification(S, "1", "4"))
    assert await world.client.items(2) == [("2", "2"), ("4", "4")]


@story
async def test_streams_do_not_mix(world: World) -> None:
    peer = await world.subscribed()
    await world.subscribe(
        peer, id="c", target={"kind": "channel", "name": "Fires", "arguments": {"x": 1}}, stream="channel:Fires/7"
    )
    await peer.send(
        notification("channel:Fires/7", "0", "9"), notification("topic:unknown", "0", "5"), notification(S, "0", "1")
    )
    events = [(await world.client.event())["item"] for _ in range(2)]
    assert [(item["subscription"], item["through"]) for item in events] == [("c", "9"), ("n", "1")]


@story
async def test_two_subscriptions_to_a_stream_each_have_their_position(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    await world.subscribe(peer, id="m", at="2")
    await peer.send(notification(S, "1", "2"), notification(S, "2", "3"))
    events = [(await world.client.event())["item"] for _ in range(3)]
    assert sorted((item["subscription"], item["through"]) for item in events) == [("m", "3"), ("n", "2"), ("n", "3")]


@story
async def test_what_was_taken_is_acknowledged(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await world.client.items(2)
    acked = ""
    while acked != "2":
        acked = (await peer.next("ack"))["positions"][S]


@story
async def test_a_stream_is_acknowledged_as_far_as_all_its_subscriptions_are_taken(world: World) -> None:
    peer = await world.subscribed(times_ms={"ack_interval": 60_000})
    await world.client.ask("reading", on=False)
    await world.subscribe(peer, id="m")
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await world.client.items(1)
    closing = asyncio.create_task(world.client.ask("close"))
    assert (await peer.next("ack"))["positions"] == {S: "0"}
    await peer.close(1000)
    await closing


@story
async def test_an_acknowledgement_whose_connection_breaks_is_said_again(world: World) -> None:
    peer = await world.subscribed(times_ms={"ack_interval": 50})
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    while (await peer.next("ack"))["positions"] != {S: "1"}:
        pass
    peer.abort()
    peer = await world.a.peer()
    await resumed(peer)
    assert (await peer.next("ack"))["positions"] == {S: "1"}


@story
async def test_positions_go_from_one_session_to_the_next(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await world.client.items(2)
    positions = await world.client.ask("positions")
    assert positions == {"n": "2"}
    closing = asyncio.create_task(world.client.ask("close"))
    await peer.done("logout")
    await closing
    peer = await world.connect(positions=positions)
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    assert (await peer.subscribed(S, "2"))["position"] == "2"
    await asked
    await peer.send(notification(S, "0", "2"), notification(S, "2", "3"))
    while (event := await world.client.event())["event"] == "over":
        pass
    assert event["item"]["through"] == "3"


# --- holes ----------------------------------------------------------------------------------------


@story
async def test_an_announced_gap_is_told_with_its_count(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(gap(S, "retention", ("0", "5", 4)), notification(S, "5", "6"))
    assert await world.client.items(2) == [("gap", "0", "5", 4, "retention"), ("6", "6")]


@story
async def test_one_who_stands_where_the_stream_never_was_goes_on_from_where_it_is(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "7"), gap(S, "slow", ("8", "9", 1)), gap(S, "ahead", ("7", "2", None)))
    await peer.send(notification(S, "2", "3"), notification(S, "3", "7"), notification(S, "7", "8"))
    told = [("7", "7"), ("gap", "7", "2", None, "ahead"), ("3", "3"), ("7", "7"), ("8", "8")]
    assert await world.client.items(5) == told
    while (await peer.next("ack"))["positions"] != {S: "8"}:
        pass


@story
async def test_only_a_subscription_that_stands_where_the_stream_never_was_goes_back(world: World) -> None:
    peer = await world.subscribed()
    await world.subscribe(peer, id="m", at="1", position="7")
    await peer.send(gap(S, "slow", ("2", "3", 1)), gap(S, "ahead", ("7", "1", None)))
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"), notification(S, "3", "4"))
    items = [(await world.client.event())["item"] for _ in range(8)]
    told = {id: [_told(item) for item in items if item["subscription"] == id] for id in ("n", "m")}
    assert told["n"] == [("0", "1"), ("1", "2"), ("2", "3", "slow"), ("3", "4")]
    assert told["m"] == [("7", "1", "ahead"), ("1", "2"), ("2", "3", "unannounced"), ("3", "4")]


def _told(item: dict[str, Any]) -> tuple[str, ...]:
    reason = (item["reason"],) if item["type"] == "gap" else ()
    return (item["after"], item["through"], *reason)


@story
async def test_holes_between_notifications_are_told_where_they_lie(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(gap(S, "slow", ("0", "1", 1), ("2", "3", 1), ("4", "5", None)))
    await peer.send(notification(S, "1", "2"), notification(S, "3", "4"), notification(S, "5", "6"))
    assert await world.client.items(6) == [
        ("gap", "0", "1", 1, "slow"),
        ("2", "2"),
        ("gap", "2", "3", 1, "slow"),
        ("4", "4"),
        ("gap", "4", "5", None, "slow"),
        ("6", "6"),
    ]


@story
async def test_a_hole_that_nobody_announced_is_told_as_such(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"), notification(S, "3", "4"))
    assert await world.client.items(3) == [("1", "1"), ("gap", "1", "3", None, "unannounced"), ("4", "4")]


@story
async def test_announced_and_unannounced_holes_are_told_apart(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(gap(S, "slow", ("2", "4", 2)), notification(S, "6", "7"))
    assert await world.client.items(4) == [
        ("gap", "0", "2", None, "unannounced"),
        ("gap", "2", "4", 2, "slow"),
        ("gap", "4", "6", None, "unannounced"),
        ("7", "7"),
    ]


@story
async def test_what_of_a_gap_is_known_already_is_not_told(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "3"), gap(S, "slow", ("0", "2", 2)), gap(S, "slow", ("2", "5", 3)))
    assert await world.client.items(2) == [("3", "3"), ("gap", "3", "5", None, "slow")]


@story
async def test_a_new_owners_epoch_is_told_as_a_gap(world: World) -> None:
    peer = await world.subscribed()
    first, second = "000000000001-000000000009", "000000000002-000000000000"
    await peer.send(notification(S, "0", first), gap(S, "owner", (first, second, None)))
    await peer.send(notification(S, second, "000000000002-000000000001"))
    assert (await world.client.items(3))[1] == ("gap", first, second, None, "owner")


@story
async def test_a_slow_application_gets_a_gap_and_what_is_newest(world: World) -> None:
    peer = await world.connect(settings={"queue_items": 3})
    await world.client.ask("reading", on=False)
    await world.subscribe(peer)
    await peer.send(*[notification(S, f"{n:03}" if n else "0", f"{n + 1:03}") for n in range(100)])
    await arrived(world, peer)
    await world.client.ask("reading", on=True)
    assert await world.client.items(3) == [("gap", "0", "098", 98, "slow"), ("099", "099"), ("100", "100")]


@story
async def test_requests_under_way_are_bounded(world: World) -> None:
    peer = await world.connect(settings={"max_requests": 2})
    under_way = [asyncio.create_task(world.client.ask("publish", topic="t", payload=n)) for n in range(2)]
    sent = [await peer.next("publish") for _ in under_way]
    with pytest.raises(Refused) as refused:
        await world.client.ask("publish", topic="t", payload=2)
    assert refused.value.code == "limit-exceeded"
    await peer.send(*[{"type": "published", "request": one["request"], "position": "1"} for one in sent])
    await asyncio.gather(*under_way)


# --- coming back ----------------------------------------------------------------------------------


@story
async def test_a_client_that_lost_its_connection_resumes_where_it_stood(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    peer.abort()
    peer = await world.a.peer()
    assert (await resumed(peer))["subscriptions"] == [{"id": "n", "target": NEWS, "position": "1"}]
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    assert await world.client.items(1) == [("2", "2")]


@story
async def test_what_could_not_be_recovered_is_told(world: World) -> None:
    peer = await world.subscribed()
    peer.abort()
    peer = await world.a.peer()
    login = await peer.next("login")
    await peer.welcome(stands(login["subscriptions"][0], S, "7", recovered=False), login=login)
    await peer.send(gap(S, "retention", ("0", "7", 3)), notification(S, "7", "8"))
    assert await world.client.items(2) == [("gap", "0", "7", 3, "retention"), ("8", "8")]


@story
async def test_a_resume_that_says_nothing_was_missed_is_believed(world: World) -> None:
    peer = await world.subscribed()
    peer.abort()
    peer = await world.a.peer()
    login = await peer.next("login")
    await peer.welcome(stands(login["subscriptions"][0], S, "5"), login=login)
    await peer.send(notification(S, "5", "6"))
    assert await world.client.items(1) == [("6", "6")]


@story
async def test_another_stream_under_the_same_id_is_told_as_a_gap(world: World) -> None:
    peer = await world.subscribed()
    peer.abort()
    peer = await world.a.peer()
    login = await peer.next("login")
    await peer.welcome(stands(login["subscriptions"][0], "topic:other", "3"), login=login)
    await peer.send(notification("topic:other", "3", "4"))
    assert await world.client.items(2) == [("gap", "", "3", None, "lost"), ("4", "4")]


COME_BACK = [1001, 1011, 3000, *(code.number for code in codes.ALL if code.number < 4100)]


@pytest.mark.parametrize("code", COME_BACK)
@story
async def test_after_these_codes_a_client_comes_back_to_its_broker(world: World, code: int) -> None:
    peer = await world.subscribed()
    await peer.close(code)
    peer = await world.a.peer()
    await resumed(peer)
    await peer.send(notification(S, "0", "1"))
    assert await world.client.items(1) == [("1", "1")]


@pytest.mark.parametrize("code", [code.number for code in codes.ALL if codes.asks_where(code.number)])
@story
async def test_after_these_codes_a_client_asks_where_it_belongs(world: World, code: int) -> None:
    world.coordinator.place = world.a.url
    peer = await world.subscribed(coordinator=world.coordinator.url, user="ann", location=[1.0, 2.0], token="secret")
    world.coordinator.place = world.b.url
    await peer.close(code)
    peer = await world.b.peer()
    login = await resumed(peer)
    assert (login["ticket"], len(login["subscriptions"])) == ("t1", 1)
    await peer.done("confirm")
    assert world.coordinator.asked == [("/users/ann/placement", "Bearer secret", {"location": [1.0, 2.0]})] * 2


@pytest.mark.parametrize("code", [code.number for code in codes.ALL if not codes.comes_back(code.number)])
@story
async def test_after_these_codes_the_session_is_over(world: World, code: int) -> None:
    peer = await world.subscribed()
    await peer.send({"type": "error", "code": "scripted", "detail": "because"})
    await peer.close(code)
    event = await world.client.event()
    assert (event["event"], event["error"]["number"]) == ("stopped", code)
    for asked in ({"name": "publish", "topic": "t", "payload": 1}, {"name": "subscribe", "id": "m", "target": NEWS}):
        with pytest.raises(Refused) as refused:
            await world.client.ask(**asked)
        assert (refused.value.code, refused.value.number) == ("session-ended", code)
    assert world.a.connections == 1


@pytest.mark.parametrize(
    "options",
    [
        {"coordinator": "nonsense"},
        {"coordinator": "ftp://x"},
        {"coordinator": "http://"},
        {"coordinator": "http://127.0.0.1:99999"},
        {"coordinator": "http://[::1"},
        {"coordinator": 5},
        {"broker": "nonsense"},
        {"token": 5},
    ],
    ids=str,
)
@story
async def test_what_nobody_could_connect_with_is_refused_at_once(world: World, options: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        await world.begin(**options)
    assert refused.value.code == "bad-argument"
    assert next(iter(options)) in refused.value.detail


@story
async def test_a_first_login_that_is_refused_is_an_error(world: World) -> None:
    asked = asyncio.create_task(world.begin(token="bad"))
    peer = await world.a.peer()
    login = await peer.next("login")
    await peer.send({"type": "error", "request": login["request"], "code": "unauthenticated", "detail": "expired"})
    await peer.close(codes.BAD_TOKEN.number)
    with pytest.raises(Refused, match="expired"):
        await asked


@story
async def test_a_first_login_that_nobody_answers_is_an_error(world: World) -> None:
    await world.a.stop()
    with pytest.raises(Refused) as refused:
        await world.begin(times_ms={"connect_timeout": 300})
    assert refused.value.code == "unavailable"


@story
async def test_a_broker_that_knows_the_right_one_is_believed(world: World) -> None:
    asked = asyncio.create_task(world.begin())
    peer = await world.a.peer()
    login = await peer.next("login")
    told = {"type": "error", "request": login["request"], "code": "moved", "detail": "elsewhere", "url": world.b.url}
    await peer.send(told)
    await peer.close(codes.MOVED.number)
    await resumed(await world.b.peer())
    await asked


@story
async def test_a_client_whose_broker_is_gone_asks_the_coordinator(world: World) -> None:
    world.coordinator.place = world.a.url
    peer = await world.subscribed(coordinator=world.coordinator.url, user="ann")
    world.coordinator.place = world.b.url
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    await world.a.stop()
    login = await resumed(await world.b.peer())
    assert login["subscriptions"][0]["position"] == "1"


@story
async def test_while_the_coordinator_is_away_the_last_broker_is_tried(world: World) -> None:
    world.coordinator.place = world.a.url
    peer = await world.subscribed(coordinator=world.coordinator.url, user="ann")
    world.coordinator.place = 503
    await peer.close(codes.MOVED.number)
    await resumed(await world.a.peer())


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "unauthenticated"), (403, "unauthenticated"), (404, "placement-refused"), (422, "placement-refused")],
)
@story
async def test_a_coordinator_that_refuses_the_user_ends_it(world: World, status: int, code: str) -> None:
    world.coordinator.place = status
    with pytest.raises(Refused, match=f"scripted {status}") as refused:
        await world.begin(coordinator=world.coordinator.url, user="ann")
    assert refused.value.code == code


@story
async def test_a_coordinator_that_starts_later_is_waited_for(world: World) -> None:
    asked = asyncio.create_task(world.begin(coordinator=world.coordinator.url, token=token(3600)))
    while not world.coordinator.asked:
        await asyncio.sleep(0.01)
    world.coordinator.place = world.a.url
    await resumed(await world.a.peer())
    await asked
    assert {path for path, _, _ in world.coordinator.asked} == {"/users/ann/placement"}


@story
async def test_a_broker_that_does_not_welcome_is_given_up(world: World) -> None:
    asked = asyncio.create_task(world.begin(times_ms={"login_timeout": 1500}))
    silent = await world.a.peer()
    await silent.next("login")
    await resumed(await world.a.peer())
    await asked


@story
async def test_a_connection_is_pinged_and_given_up_when_nothing_comes(world: World) -> None:
    asked = asyncio.create_task(world.begin())
    peer = await world.a.peer()
    await resumed(peer, ping_s=0.4)
    await asked
    ping = await peer.next("ping")
    await peer.send({"type": "pong", "request": ping["request"]})
    await peer.next("ping")
    await resumed(await world.a.peer())
    await peer.closed()


# --- moves ----------------------------------------------------------------------------------------


def move(world: World) -> dict[str, Any]:
    return {"type": "move", "broker": "b", "url": world.b.url, "ticket": "t2"}


@story
async def test_a_move_makes_before_it_breaks(world: World) -> None:
    source = await world.subscribed()
    await source.send(notification(S, "0", "1"), move(world))
    destination = await world.b.peer()
    login = await destination.next("login")
    assert (login["ticket"], login["subscriptions"][0]["position"]) == ("t2", "1")
    await source.send(notification(S, "1", "2"), notification(S, "2", "3"))
    assert await world.client.items(3) == [("1", "1"), ("2", "2"), ("3", "3")]
    await destination.welcome(stands(login["subscriptions"][0], S, "1"), login=login)
    confirm = await destination.next("confirm")
    await destination.send(notification(S, "1", "2"), notification(S, "2", "3"), notification(S, "3", "4"))
    await source.send(notification(S, "3", "4"), notification(S, "4", "5"))
    assert await world.client.items(2) == [("4", "4"), ("5", "5")]
    await destination.send({"type": "done", "request": confirm["request"]})
    assert await source.closed() == 1000
    await destination.send(notification(S, "4", "5"), notification(S, "5", "6"))
    assert await world.client.items(1) == [("6", "6")]
    assert (world.a.connections, world.b.connections) == (1, 1)


@story
async def test_after_a_move_requests_go_to_the_destination(world: World) -> None:
    source = await world.subscribed()
    await source.send(move(world))
    destination = await world.b.peer()
    await resumed(destination)
    await destination.done("confirm")
    await source.closed()
    asked = asyncio.create_task(world.client.ask("held"))
    listed = await destination.next("list")
    await destination.send({"type": "subscriptions", "request": listed["request"], "subscriptions": []})
    assert await asked == {"ids": []}


@story
async def test_the_source_answers_what_it_was_asked_before_it_is_left(world: World) -> None:
    source = await world.subscribed()
    asked = asyncio.create_task(world.client.ask("publish", topic="t", payload=1))
    publish = await source.next("publish")
    await source.send(move(world))
    destination = await world.b.peer()
    await resumed(destination)
    await destination.done("confirm")
    await destination.send(notification(S, "0", "1"))
    await world.client.items(1)
    await source.send({"type": "published", "request": publish["request"], "position": "8"})
    assert await asked == {"position": "8"}
    assert await source.closed() == 1000


@story
async def test_a_subscription_made_during_a_move_stands_at_the_destination(world: World) -> None:
    source = await world.subscribed()
    await source.send(move(world))
    destination = await world.b.peer()
    login = await destination.next("login")
    await world.subscribe(source, id="late", target={"kind": "topic", "name": "late"}, stream="topic:late", at="4")
    await destination.welcome(stands(login["subscriptions"][0], S, "0"), login=login)
    await destination.done("confirm")
    again = await destination.subscribed("topic:late", "4")
    assert (again["id"], again["position"]) == ("late", "4")


@pytest.mark.parametrize("is_named", [True, False], ids=["asked for without a position", "not asked for"])
@story
async def test_where_a_destination_begins_by_itself_says_nothing_of_where_we_stand(
    world: World, is_named: bool
) -> None:
    """It may hold the subscription already, for the user or for a login that was sent before it stood."""
    source = await world.subscribed()
    late = {"id": "late", "target": {"kind": "topic", "name": "late"}}
    asked = asyncio.create_task(world.client.ask("subscribe", **late)) if is_named else None
    subscribe = await source.next("subscribe") if is_named else None
    await source.send(move(world))
    destination = await world.b.peer()
    login = await destination.next("login")
    assert len(login["subscriptions"]) == 1 + is_named
    asked = asked or asyncio.create_task(world.client.ask("subscribe", **late))
    subscribe = subscribe or await source.next("subscribe")
    standing = stands(late, "topic:late", "4")
    await source.send({"type": "subscribed", "request": subscribe["request"], "subscription": standing})
    await asked
    known = [stands(login["subscriptions"][0], S, "0"), stands(late, "topic:late", "5")]
    await destination.welcome(*known, login=login)
    await destination.send(notification("topic:late", "5", "6"))
    await destination.done("confirm")
    again = await destination.subscribed("topic:late", "4")
    assert (again["id"], again["position"]) == ("late", "4")
    await destination.send(notification("topic:late", "4", "5"), notification("topic:late", "5", "6"))
    assert await world.client.items(2) == [("5", "5"), ("6", "6")]


@pytest.mark.parametrize(
    "fault", ["refuses", "closes", "cannot serve", "is not there", "does not answer", "refuses to confirm"]
)
@story
async def test_a_move_that_fails_leaves_the_client_where_it_was(world: World, fault: str) -> None:
    source = await world.subscribed(times_ms={"login_timeout": 1500} if fault == "does not answer" else None)
    if fault == "is not there":
        await world.b.stop()
    await source.send(move(world))
    if fault != "is not there":
        await _fail(await world.b.peer(), fault)
    await source.send(notification(S, "0", "1"))
    assert await world.client.items(1) == [("1", "1")]
    if fault == "is not there":
        await world.b.start()
    await source.send(move(world))
    destination = await world.b.peer()
    await resumed(destination)
    await destination.done("confirm")
    assert await source.closed() == 1000
    assert world.a.connections == 1


async def _fail(destination: Peer, fault: str) -> None:
    login = await destination.next("login")
    if fault == "refuses":
        await destination.send({"type": "error", "request": login["request"], "code": "forbidden", "detail": "used"})
    elif fault == "closes":
        await destination.close(codes.BAD_TOKEN.number)
    elif fault == "cannot serve":
        refused = [{"id": "n", "code": "unavailable", "detail": "no cluster"}]
        await destination.welcome(login=login, refused=refused)
    elif fault == "refuses to confirm":
        await destination.welcome(stands(login["subscriptions"][0], S, "0"), login=login)
        confirm = await destination.next("confirm")
        await destination.send({"type": "error", "request": confirm["request"], "code": "stale", "detail": "older"})
    await destination.closed()


@pytest.mark.parametrize("code", [1006, codes.RELEASED.number, codes.GOING_AWAY.number])
@pytest.mark.parametrize("is_welcomed", [True, False], ids=["welcomed", "not yet welcomed"])
@story
async def test_when_the_source_dies_the_destination_takes_over(world: World, code: int, is_welcomed: bool) -> None:
    source = await world.subscribed()
    await source.send(notification(S, "0", "1"), move(world))
    destination = await world.b.peer()
    login = await destination.next("login")
    if not is_welcomed:
        await _leave(source, code)
    await destination.welcome(stands(login["subscriptions"][0], S, "1"), login=login)
    confirm = await destination.next("confirm")
    if is_welcomed:
        await _leave(source, code)
    asked = asyncio.create_task(_publish(world))
    publish = await destination.next("publish")
    await destination.send({"type": "published", "request": publish["request"], "position": "1"})
    await asked
    await destination.send({"type": "done", "request": confirm["request"]}, notification(S, "1", "2"))
    assert await world.client.items(2) == [("1", "1"), ("2", "2")]
    assert (world.a.connections, world.b.connections) == (1, 1)


async def _publish(world: World) -> None:
    """Publish until it is answered: the client may not have seen yet that its source is gone."""
    while True:
        try:
            return await world.client.ask("publish", topic="t", payload=1)
        except Refused as refused:
            if refused.code != "uncertain":
                raise


async def _leave(peer: Peer, code: int) -> None:
    if code == 1006:
        peer.abort()
    else:
        await peer.close(code)


@pytest.mark.parametrize("is_welcomed", [True, False], ids=["welcomed", "not yet welcomed"])
@story
async def test_one_that_another_connection_of_the_same_client_replaces_does_not_end_it(
    world: World, is_welcomed: bool
) -> None:
    """A move that leads back to the same broker: that ends the older connection of the session's name."""
    older = await world.subscribed(session="mine")
    await older.send({**move(world), "url": world.a.url})
    newer = await world.a.peer()
    login = await newer.next("login")
    if not is_welcomed:
        await older.close(codes.REPLACED.number)
    await newer.welcome(stands(login["subscriptions"][0], S, "0"), login=login)
    if is_welcomed:
        await older.close(codes.REPLACED.number)
    await newer.done("confirm")
    await newer.send(notification(S, "0", "1"))
    assert await world.client.items(1) == [("1", "1")]
    assert world.a.connections == 2


@story
async def test_when_both_ends_of_a_move_die_the_client_comes_back(world: World) -> None:
    source = await world.subscribed()
    await source.send(notification(S, "0", "1"), move(world))
    destination = await world.b.peer()
    await destination.next("login")
    source.abort()
    destination.abort()
    back = await world.a.peer()
    assert (await resumed(back))["subscriptions"][0]["position"] == "1"


@story
async def test_a_newer_move_replaces_one_under_way(world: World) -> None:
    source = await world.subscribed()
    await source.send(move(world))
    first = await world.b.peer()
    await first.next("login")
    await source.send({**move(world), "ticket": "t3"})
    second = await world.b.peer()
    assert (await resumed(second))["ticket"] == "t3"
    await first.closed()
    await second.done("confirm")
    assert await source.closed() == 1000


# --- tokens ---------------------------------------------------------------------------------------


@story
async def test_a_token_is_renewed_without_a_new_connection(world: World) -> None:
    first, second = token(2), token(3600)
    peer = await world.subscribed(tokens=[first, second])
    assert (await peer.next("refresh"))["token"] == second
    assert world.a.connections == 1


@pytest.mark.parametrize("who", ["application", "broker"])
@story
async def test_no_token_is_asked_for_once_the_session_is_over(world: World, who: str) -> None:
    peer = await world.connect(tokens=[token(0)], token_takes_ms=300)
    while await world.client.ask("asked_tokens") < 2:  # the login's, and one to renew it, which is under way
        await asyncio.sleep(0.01)
    if who == "broker":
        await peer.close(codes.BAD_MESSAGE.number)
    else:
        closing = asyncio.create_task(world.client.ask("close"))
        await peer.done("logout")
        await closing
    await asyncio.sleep(0.1)
    asked = await world.client.ask("asked_tokens")
    await asyncio.sleep(1.0)
    assert await world.client.ask("asked_tokens") == asked


@story
async def test_the_application_can_show_another_token(world: World) -> None:
    peer = await world.subscribed(token="first")
    asked = asyncio.create_task(world.client.ask("refresh", token="second"))
    assert (await peer.done("refresh"))["token"] == "second"
    await asked
    peer.abort()
    assert (await resumed(await world.a.peer()))["token"] == "second"


@pytest.mark.parametrize("is_refused", [False, True], ids=["the login succeeds", "the old one is refused"])
@story
async def test_a_token_that_is_shown_during_a_login_counts(world: World, is_refused: bool) -> None:
    peer = await world.connect(token="old")
    peer.abort()
    peer = await world.a.peer()
    login = await peer.next("login")
    assert login["token"] == "old"
    await world.client.ask("refresh", token="new")
    if is_refused:
        await peer.close(codes.BAD_TOKEN.number)
        assert (await resumed(await world.a.peer()))["token"] == "new"
    else:
        await peer.welcome(login=login)
        assert (await peer.done("refresh"))["token"] == "new"


@story
async def test_a_token_that_is_shown_while_the_coordinator_refuses_the_old_one_counts(world: World) -> None:
    world.coordinator.place = 503
    asked = asyncio.create_task(world.begin(coordinator=world.coordinator.url, token=token(60), broker=world.a.url))
    peer = await world.a.peer()
    await resumed(peer)
    await asked
    world.coordinator.place = 401
    world.coordinator.may_answer.clear()
    before = len(world.coordinator.asked)
    await peer.close(codes.MOVED.number)
    while len(world.coordinator.asked) == before:
        await asyncio.sleep(0.01)
    newer = token(120)
    await world.client.ask("refresh", token=newer)
    world.coordinator.may_answer.set()
    assert (await resumed(await world.a.peer()))["token"] == newer


@pytest.mark.parametrize("where", ["coordinator", "broker"])
@story
async def test_a_function_that_gives_no_token_is_asked_again_and_does_not_keep_close_waiting(
    world: World, where: str
) -> None:
    world.coordinator.place = world.a.url
    options = {"coordinator": world.coordinator.url} if where == "coordinator" else {}
    times = {"login_timeout": 100, "connect_timeout": 1_000}
    with pytest.raises(Refused, match="unavailable"):
        await world.begin(tokens=["t"], token_takes_ms=600_000, times_ms=times, **options)
    assert await world.client.ask("asked_tokens") > 1


@story
async def test_a_refused_token_is_replaced_once_where_that_is_possible(world: World) -> None:
    peer = await world.subscribed(tokens=["first", "second", "third"])
    await peer.close(codes.BAD_TOKEN.number)
    peer = await world.a.peer()
    assert (await peer.next("login"))["token"] == "second"
    await peer.close(codes.BAD_TOKEN.number)
    assert (await world.client.event())["error"]["number"] == codes.BAD_TOKEN.number
    assert world.a.connections == 2


# --- requests -------------------------------------------------------------------------------------


@story
async def test_publishing_and_records_are_answered(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("publish", topic="news", payload={"a": [1, None]}))
    publish = await peer.next("publish")
    assert (publish["topic"], publish["payload"]) == ("news", {"a": [1, None]})
    await peer.send({"type": "published", "request": publish["request"], "position": "5"})
    assert await asked == {"position": "5"}
    asked = asyncio.create_task(world.client.ask("records", dataset="Places", records=[{"x": 1}, {"x": 2}]))
    records = await peer.next("records")
    assert (records["dataset"], records["records"]) == ("Places", [{"x": 1}, {"x": 2}])
    await peer.send({"type": "accepted", "request": records["request"], "accepted": 1, "rejected": 1})
    assert await asked == {"accepted": 1, "rejected": 1}


@story
async def test_a_refused_request_says_why(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("publish", topic="news", payload=1))
    number = (await peer.next("publish"))["request"]
    await peer.send(
        {"type": "error", "request": number, "code": "forbidden", "detail": "may not", "retry_after_s": 3.0}
    )
    with pytest.raises(Refused, match="may not") as refused:
        await asked
    assert refused.value.code == "forbidden"


@pytest.mark.parametrize("is_connected", [True, False], ids=["at once", "while there is no connection"])
@pytest.mark.parametrize(
    "what",
    [
        "a target without JSON",
        "a target with no number",
        "a target that is none",
        "a target with half a character",
        "an id that is no text",
        "a position that is no text",
        "a position that is too long",
        "a payload without JSON",
        "a payload that is no number",
        "a payload that is nothing",
        "a topic that is no text",
        "a dataset that is no text",
        "records that are no list",
        "one record instead of a list",
        "a record without JSON",
        "a token that is no text",
    ],
)
@story
async def test_what_cannot_be_said_is_refused_to_its_caller_alone(world: World, what: str, is_connected: bool) -> None:
    peer = await world.subscribed(times_ms={"ack_interval": 60_000})
    if not is_connected:
        peer.abort()
        peer = await world.a.peer()
    with pytest.raises(Refused) as refused:
        await world.client.ask("misuse", what=what)
    assert refused.value.code == "bad-argument"
    if not is_connected:
        assert [wanted["id"] for wanted in (await resumed(peer))["subscriptions"]] == ["n"]
    asked = asyncio.create_task(world.client.ask("held"))
    listed = await peer.next()
    assert listed["type"] == "list"
    await peer.send({"type": "subscriptions", "request": listed["request"], "subscriptions": []})
    await asked
    await peer.send(notification(S, "0", "1"))
    assert await world.client.items(1) == [("1", "1")]


@pytest.mark.parametrize("size", [870, 1100], ids=["of a length that is allowed", "that is too long"])
@pytest.mark.parametrize("what", ["publish", "records", "subscribe"])
@story
async def test_a_message_is_not_sent_where_its_broker_would_not_take_it(world: World, what: str, size: int) -> None:
    begun = asyncio.create_task(world.begin())
    peer = await world.a.peer()
    await peer.welcome(max_message_bytes=1000)
    await begun
    arguments: dict[str, dict[str, Any]] = {
        "publish": {"topic": "t", "payload": "é" * (size // 2)},
        "records": {"dataset": "Places", "records": ["x" * (size - 10)]},
        "subscribe": {"id": "n", "target": {"kind": "channel", "name": "Near", "arguments": ["x" * (size - 30)]}},
    }
    asked = asyncio.create_task(world.client.ask(what, **arguments[what]))
    if size < 1000:
        assert (await peer.next())["type"] == what
        asked.cancel()
        return
    with pytest.raises(Refused) as refused:
        await asked
    assert refused.value.code == "limit-exceeded"
    await arrived(world, peer)


@story
async def test_a_request_whose_connection_breaks_is_uncertain(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("publish", topic="news", payload=1))
    await peer.next("publish")
    peer.abort()
    with pytest.raises(Refused) as refused:
        await asked
    assert refused.value.code == "uncertain"


@story
async def test_a_publication_that_its_broker_knows_no_end_of_is_uncertain(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("publish", topic="news", payload=1))
    number = (await peer.next("publish"))["request"]
    await peer.send(
        {"type": "error", "request": number, "code": "uncertain", "detail": "the owner of 'news' went away"}
    )
    with pytest.raises(Refused) as refused:
        await asked
    assert (refused.value.code, refused.value.detail) == ("uncertain", "the owner of 'news' went away")


@story
async def test_a_request_without_a_connection_waits_for_one(world: World) -> None:
    peer = await world.connect()
    await peer.close(1001)
    peer = await world.a.peer()
    login = await peer.next("login")
    asked = asyncio.create_task(world.client.ask("publish", topic="news", payload=1))
    await peer.welcome(login=login)
    number = (await peer.next("publish"))["request"]
    await peer.send({"type": "published", "request": number, "position": "1"})
    assert await asked == {"position": "1"}


@story
async def test_a_subscription_whose_connection_breaks_is_made_at_the_next_login(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await peer.next("subscribe")
    peer.abort()
    login = await resumed(await world.a.peer())
    assert login["subscriptions"] == [{"id": "n", "target": NEWS}]
    assert await asked == {"stream": S, "position": "0"}


@story
async def test_a_refused_subscription_is_an_error(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    number = (await peer.next("subscribe"))["request"]
    await peer.send({"type": "error", "request": number, "code": "not-found", "detail": "there is no such"})
    with pytest.raises(Refused) as refused:
        await asked
    assert refused.value.code == "not-found"


@story
async def test_a_subscription_refused_at_a_later_login_stops(world: World) -> None:
    peer = await world.subscribed()
    peer.abort()
    peer = await world.a.peer()
    await peer.welcome(refused=[{"id": "n", "code": "not-found", "detail": "it was dropped"}])
    event = await world.client.event()
    assert (event["event"], event["id"], event["error"]["code"]) == ("stopped", "n", "not-found")


@story
async def test_a_subscription_that_its_broker_ended_stops_after_what_it_had(world: World) -> None:
    peer = await world.subscribed()
    await world.client.ask("reading", on=False)
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await peer.send({"type": "ended", "id": "n", "code": "dropped", "detail": "its channel was dropped"})
    await peer.send({"type": "ended", "id": "unknown", "code": "dropped", "detail": "it was not there"})
    await world.client.ask("reading", on=True)
    assert await world.client.items(2) == [("1", "1"), ("2", "2")]
    stopped = await world.client.event()
    assert (stopped["event"], stopped["id"], stopped["error"]["code"]) == ("stopped", "n", "dropped")
    peer.abort()
    assert not (await resumed(await world.a.peer())).get("subscriptions")


@story
async def test_a_subscription_that_was_ended_can_be_made_again(world: World) -> None:
    peer = await world.subscribed()
    await peer.send({"type": "ended", "id": "n", "code": "replaced", "detail": "its channel was replaced"})
    assert (await world.client.event())["event"] == "stopped"
    assert (await world.subscribe(peer, at="7"))["position"] == "7"
    await peer.send(notification(S, "7", "8"))
    assert await world.client.items(1) == [("8", "8")]


@story
async def test_what_ended_an_earlier_subscription_leaves_one_that_was_asked_for_anew(world: World) -> None:
    """The broker's word crosses the client's: it speaks of the subscription before."""
    peer = await world.subscribed()
    ending = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    unsubscribe = await peer.next("unsubscribe")
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    subscribe = await peer.next("subscribe")
    await peer.send({"type": "ended", "id": "n", "code": "unsubscribed", "detail": "another session ended it"})
    await peer.send({"type": "error", "request": unsubscribe["request"], "code": "not-found", "detail": "it is gone"})
    standing = stands(subscribe, S, "7")
    await peer.send({"type": "subscribed", "request": subscribe["request"], "subscription": standing})
    await ending
    assert (await asked)["position"] == "7"
    assert (await world.client.event())["event"] == "over"
    await peer.send(notification(S, "7", "8"))
    assert await world.client.items(1) == [("8", "8")]


@story
async def test_a_subscription_that_cannot_be_served_now_is_tried_again(world: World) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    peer.abort()
    peer = await world.a.peer()
    await peer.welcome(refused=[{"id": "n", "code": "unavailable", "detail": "no cluster"}])
    number = (await peer.next("subscribe"))["request"]
    await peer.send(
        {"type": "error", "request": number, "code": "unavailable", "detail": "still", "retry_after_s": 0.01}
    )
    assert (await peer.subscribed(S, "1"))["position"] == "1"
    await peer.send(notification(S, "1", "2"))
    assert await world.client.items(1) == [("2", "2")]


def _away(number: int) -> dict[str, Any]:
    return {"type": "error", "request": number, "code": "unavailable", "detail": "no cluster"}


@story
async def test_a_new_subscription_waits_for_a_part_that_is_away(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await peer.send(_away((await peer.next("subscribe"))["request"]))
    await peer.subscribed(S, "1")
    assert (await asked)["position"] == "1"


@story
async def test_a_new_subscription_does_not_wait_for_ever(world: World) -> None:
    peer = await world.connect(times_ms={"subscribe_timeout": 0})
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await peer.send(_away((await peer.next("subscribe"))["request"]))
    with pytest.raises(Refused) as refused:
        await asked
    assert refused.value.code == "unavailable"


@story
async def test_a_subscription_of_an_earlier_session_waits_as_one_of_this(world: World) -> None:
    peer = await world.connect(times_ms={"subscribe_timeout": 0})
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS, position="5"))
    await peer.send(_away((await peer.next("subscribe"))["request"]))
    assert (await peer.subscribed(S, "5"))["position"] == "5"
    assert (await asked)["position"] == "5"


@story
async def test_an_unsubscribed_stream_is_not_heard_any_more(world: World) -> None:
    peer = await world.subscribed()
    asked = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    unsubscribe = await peer.next("unsubscribe")
    await peer.send(notification(S, "0", "1"), {"type": "done", "request": unsubscribe["request"]})
    await asked
    assert (await world.client.event())["event"] == "over"
    assert world.client.waiting() == 0


@story
async def test_what_waits_in_a_subscription_is_not_given_once_it_is_unsubscribed(world: World) -> None:
    peer = await world.connect()
    await world.client.ask("reading", on=False)
    await world.subscribe(peer)
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await arrived(world, peer)
    asked = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    await peer.done("unsubscribe")
    await asked
    await world.client.ask("reading", on=True)
    assert (await world.client.event())["event"] == "over"


@story
async def test_a_subscription_can_be_ended_before_it_stands(world: World) -> None:
    peer = await world.connect()
    asked = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    subscribe = await peer.next("subscribe")
    ending = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    unsubscribe = await peer.next("unsubscribe")
    standing = stands(subscribe, S, "0")
    await peer.send({"type": "subscribed", "request": subscribe["request"], "subscription": standing})
    await peer.send(notification(S, "0", "1"), {"type": "done", "request": unsubscribe["request"]})
    await ending
    assert await asked == {}
    assert (await world.client.event())["event"] == "over"
    assert world.client.waiting() == 0


@story
async def test_an_answer_is_about_what_was_asked_and_not_about_a_later_one_with_its_id(world: World) -> None:
    peer = await world.connect()
    first = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    old = await peer.next("subscribe")
    ending = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    end = await peer.next("unsubscribe")
    await first
    sport = {"kind": "topic", "name": "sport"}
    second = asyncio.create_task(world.client.ask("subscribe", id="n", target=sport))
    new = await peer.next("subscribe")
    await peer.send({"type": "subscribed", "request": old["request"], "subscription": stands(old, S, "0")})
    await peer.send(notification(S, "0", "1"), {"type": "done", "request": end["request"]})
    standing = stands(new, "topic:sport", "7")
    await peer.send({"type": "subscribed", "request": new["request"], "subscription": standing})
    await peer.send(notification(S, "1", "2"), notification("topic:sport", "7", "8"))
    await asyncio.gather(ending, second)
    assert (await world.client.event())["event"] == "over"
    assert await world.client.items(1) == [("8", "8")]


@story
async def test_the_answer_to_an_earlier_end_does_not_end_the_later_one(world: World) -> None:
    peer = await world.subscribed()
    first = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    ended = await peer.next("unsubscribe")
    again = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await peer.next("subscribe")
    last = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    await peer.next("unsubscribe")
    await peer.send({"type": "done", "request": ended["request"]})
    await again
    peer.abort()
    peer = await world.a.peer()
    await peer.welcome(stands({"id": "n", "target": NEWS}, S, "0"))
    await peer.done("unsubscribe")
    await asyncio.gather(first, last)


@story
async def test_what_is_ended_and_subscribed_again_during_a_break_is_ended_first(world: World) -> None:
    """One id, another target: a login that named it would be refused, or would go on with the old one."""
    await world.subscribed()
    await world.a.stop()
    ended = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    weather = {"kind": "topic", "name": "weather"}
    again = asyncio.create_task(world.client.ask("subscribe", id="n", target=weather))
    await world.client.ask("positions")  # by then both are known
    await world.a.start()
    peer = await world.a.peer()
    login = await peer.next("login")
    assert not login.get("subscriptions")
    await peer.welcome({"id": "n", "target": NEWS, "stream": S, "position": "0"}, login=login)
    await peer.done("unsubscribe")
    await ended
    assert (await peer.subscribed("topic:weather", "5"))["target"] == weather
    assert await again == {"stream": "topic:weather", "position": "5"}
    await peer.send(notification("topic:weather", "5", "6"))
    assert (await world.client.event())["event"] == "over"
    assert await world.client.items(1) == [("6", "6")]


@story
async def test_what_is_ended_and_subscribed_again_before_a_move_is_ended_first_there_too(world: World) -> None:
    source = await world.subscribed()
    ended = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    await source.next("unsubscribe")
    again = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await source.next("subscribe")
    await source.send({"type": "move", "broker": "b", "url": world.b.url, "ticket": "t"})
    peer = await world.b.peer()
    login = await peer.next("login")
    assert not login.get("subscriptions")
    await peer.welcome({"id": "n", "target": NEWS, "stream": S, "position": "0"}, login=login)
    told = [await peer.next() for _ in range(1)]
    await peer.send({"type": "done", "request": told[0]["request"]})
    told += [await peer.next(), await peer.next()]
    assert [message["type"] for message in told] == ["confirm", "unsubscribe", "subscribe"]
    await peer.send({"type": "done", "request": told[1]["request"]})
    standing = stands(told[2], S, "7")
    await peer.send({"type": "subscribed", "request": told[2]["request"], "subscription": standing})
    await asyncio.gather(ended, again)
    await peer.send(notification(S, "7", "8"))
    assert (await world.client.event())["event"] == "over"
    assert await world.client.items(1) == [("8", "8")]


@story
async def test_an_end_that_cannot_be_done_now_is_said_again(world: World) -> None:
    peer = await world.subscribed()
    asked = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    for _ in range(2):
        refused = (await peer.next("unsubscribe"))["request"]
        await peer.send({"type": "error", "request": refused, "code": "unavailable", "detail": "not now"})
    await peer.done("unsubscribe")
    await asked


@story
async def test_an_end_that_cannot_be_done_does_not_end_what_was_subscribed_since(world: World) -> None:
    peer = await world.subscribed()
    asked = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    refused = (await peer.next("unsubscribe"))["request"]
    again = asyncio.create_task(world.client.ask("subscribe", id="n", target=NEWS))
    await peer.subscribed(S, "0")
    await again
    await peer.send({"type": "error", "request": refused, "code": "unavailable", "detail": "not now"})
    with pytest.raises(Refused, match="unavailable"):
        await asked
    await peer.send(notification(S, "0", "1"))
    assert (await world.client.event())["event"] == "over"
    assert await world.client.items(1) == [("1", "1")]


@story
async def test_an_unsubscription_whose_connection_breaks_is_said_again(world: World) -> None:
    peer = await world.subscribed()
    asked = asyncio.create_task(world.client.ask("unsubscribe", id="n"))
    await peer.next("unsubscribe")
    peer.abort()
    peer = await world.a.peer()
    login = await peer.next("login")
    assert not login.get("subscriptions")
    await peer.welcome({"id": "n", "target": NEWS, "stream": S, "position": "0"}, login=login)
    number = (await peer.next("unsubscribe"))["request"]
    await peer.send({"type": "error", "request": number, "code": "not-found", "detail": "there is none"})
    await asked


@story
async def test_closing_says_what_was_taken_and_leaves(world: World) -> None:
    peer = await world.subscribed(times_ms={"ack_interval": 60_000})
    await peer.send(notification(S, "0", "1"))
    await world.client.items(1)
    asked = asyncio.create_task(world.client.ask("close", forget=True))
    assert (await peer.next())["positions"] == {S: "1"}
    logout = await peer.done("logout")
    assert logout["forget"] is True
    await asked
    assert (await world.client.event())["event"] == "over"
    await peer.closed()


@story
async def test_nothing_is_handed_over_from_close_on(world: World) -> None:
    """No broker could be told that it was taken, so it would come again."""
    peer = await world.subscribed()
    await world.client.ask("reading", on=False)
    await peer.send(notification(S, "0", "1"), notification(S, "1", "2"))
    await arrived(world, peer)
    taken = (await world.client.ask("positions")).get("n")
    closing = asyncio.create_task(world.client.ask("close"))
    logout = await peer.next("logout")
    await world.client.ask("reading", on=True)
    await peer.send({"type": "done", "request": logout["request"]})
    await closing
    seen = [await world.client.event() for _ in range(2 if taken == "1" else 1)]
    assert [one["event"] for one in seen][-1] == "over"
    assert (await world.client.ask("positions")).get("n") == taken
    assert world.client.waiting() == 0


@pytest.mark.parametrize("how", ["refused", "broken", "disconnected", "ended", "closed"])
@story
async def test_who_is_not_known_to_be_forgotten_is_told(world: World, how: str) -> None:
    peer = await world.subscribed(times_ms={"backoff_min": 5_000, "backoff_max": 5_000})
    if how == "disconnected":
        await world.a.stop()
    if how == "ended":
        await peer.close(codes.BAD_TOKEN.number)
        assert (await world.client.event())["event"] == "stopped"
    if how == "closed":
        _, _ = await asyncio.gather(world.client.ask("close"), peer.done("logout"))
    closing = asyncio.create_task(world.client.ask("close", forget=True))
    if how in ("refused", "broken"):
        logout = await peer.next("logout")
        failure = {"type": "error", "request": logout["request"], "code": "unavailable", "detail": "not now"}
        await peer.send(failure) if how == "refused" else peer.abort()
    with pytest.raises(Refused) as refused:
        await closing
    codes_told = {"refused": "unavailable", "ended": "session-ended", "closed": "session-ended"}
    assert refused.value.code == codes_told.get(how, "uncertain")


# --- longer than a message may be -----------------------------------------------------------------

SHORT = 1_000
TARGETS = {f"subscription-{n}": {"kind": "topic", "name": f"{n}-{'long' * 20}"} for n in range(12)}


async def many(world: World) -> Peer:
    """Subscribed to more than one message can name."""
    asked = asyncio.create_task(world.begin())
    peer = await world.a.peer()
    await peer.welcome(max_message_bytes=SHORT)
    await asked
    for id, target in TARGETS.items():
        await world.subscribe(peer, id=id, target=target, stream=f"topic:{target['name']}")
    return peer


async def named(peer: Peer, **more: Any) -> list[str]:
    """Welcome the client with what its login names."""
    login = await peer.next("login")
    assert len(json.dumps(login, separators=(",", ":"))) <= SHORT
    told = [stands(one, f"topic:{one['target']['name']}", one["position"]) for one in login["subscriptions"]]
    await peer.welcome(*told, login=login, max_message_bytes=SHORT, **more)
    return [one["id"] for one in login["subscriptions"]]


async def asked_for(peer: Peer, wanted: int) -> list[str]:
    return [
        (await peer.subscribed(f"topic:{TARGETS[f'subscription-{n}']['name']}", "0"))["id"]
        for n in range(12 - wanted, 12)
    ]


@story
async def test_a_login_names_what_fits_and_asks_for_the_rest(world: World) -> None:
    peer = await many(world)
    peer.abort()
    peer = await world.a.peer()
    first = await named(peer)
    assert 0 < len(first) < 12
    assert first + await asked_for(peer, 12 - len(first)) == list(TARGETS)
    for target in TARGETS.values():
        await peer.send(notification(f"topic:{target['name']}", "0", "1"))
    assert await world.client.items(12) == [("1", "1")] * 12


@story
async def test_a_move_is_confirmed_when_everything_was_asked_for(world: World) -> None:
    source = await many(world)
    await source.send({"type": "move", "broker": "b", "url": world.b.url, "ticket": "t"})
    peer = await world.b.peer()
    first = await named(peer)
    rest = []
    while (message := await peer.next())["type"] == "subscribe":
        rest.append(message["id"])
        told = stands(message, f"topic:{message['target']['name']}", "0")
        await peer.send({"type": "subscribed", "request": message["request"], "subscription": told})
    assert message["type"] == "confirm"
    assert first + rest == list(TARGETS)
    await peer.send({"type": "done", "request": message["request"]})
    await source.closed()


@story
async def test_what_was_taken_is_told_in_as_many_messages_as_it_takes(world: World) -> None:
    peer = await many(world)
    for target in TARGETS.values():
        await peer.send(notification(f"topic:{target['name']}", "0", "1"))
    await world.client.items(12)
    told: dict[str, str] = {}
    while set(told.values()) != {"1"} or len(told) < 12:
        ack = await peer.next("ack")
        assert len(json.dumps(ack, separators=(",", ":"))) <= SHORT
        told.update(ack["positions"])


# --- garbage --------------------------------------------------------------------------------------


WELCOME = {"type": "welcome", "user": "u", "broker": "b", "session": "s", "ping_s": 1, "subscriptions": []}

GARBAGE = {
    "no JSON": "{",
    "not an object": "[1, 2]",
    "nothing": "null",
    "no type": '{"a": 1}',
    "an unknown type": '{"type": "surprise"}',
    "a type of an object's own": '{"type": "constructor"}',
    "a notification without positions": '{"type": "notification", "stream": "topic:news", "payload": 1}',
    "positions that are numbers": json.dumps({**notification(S, "0", "1"), "through": 1}),
    "a gap without holes": '{"type": "gap", "stream": "topic:news", "reason": "lost"}',
    "a hole that is a text": '{"type": "gap", "stream": "topic:news", "reason": "lost", "holes": ["0"]}',
    "an answer that nobody asked for": '{"type": "done", "request": 4711}',
    "a second welcome": json.dumps({**WELCOME, "request": 1}),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE.keys())
@story
async def test_garbage_ends_the_connection_and_not_the_session(world: World, text: str) -> None:
    peer = await world.subscribed()
    await peer.send(notification(S, "0", "1"))
    await peer.send_text(text)
    assert await peer.closed() == codes.BAD_MESSAGE.number
    peer = await world.a.peer()
    assert (await resumed(peer))["subscriptions"][0]["position"] == "1"
    await peer.send(notification(S, "1", "2"))
    assert await world.client.items(2) == [("1", "1"), ("2", "2")]


@story
async def test_a_message_that_is_too_long_ends_the_session(world: World) -> None:
    """Whoever came back would be sent it again, for ever."""
    peer = await world.subscribed(settings={"max_message_bytes": 10_000})
    await peer.send(notification(S, "0", "1", "x" * 20_000))
    event = await world.client.event()
    assert (event["event"], event["error"]["number"]) == ("stopped", codes.TOO_BIG.number)
    assert world.a.connections == 1
