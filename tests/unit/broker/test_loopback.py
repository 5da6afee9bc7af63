"""The whole broker over real sockets, with the ``websockets`` client at the other end."""

import asyncio
import time

import pytest
from msgspec import Raw
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from broker_world import SECRET, closed, eventually, place, run, token_of, topic, world
from tocsin.broker import standing
from tocsin.broker.ports import Page
from tocsin.protocol.codes import BAD_MESSAGE, GOING_AWAY, RELEASED, REPLACED, SILENT, comes_back
from tocsin.protocol.coordination import BrokerInfo, Placement
from tocsin.protocol.messages import (
    Accepted,
    Ack,
    Confirm,
    Done,
    Failed,
    Gap,
    Hole,
    ListSubscriptions,
    Login,
    Logout,
    Notification,
    Ping,
    Pong,
    Publish,
    Published,
    Records,
    Refresh,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
)
from tocsin.protocol.targets import TopicTarget
from tocsin.protocol.tickets import issue_ticket, read_ticket


async def payloads(client, count):
    got = [await client.next() for _ in range(count)]
    assert all(isinstance(n, Notification) for n in got), got
    return [bytes(n.payload) for n in got]


def ticket_of(user, version=1, broker="broker_1", number="n1"):
    return issue_ticket(SECRET, user, broker, version, number, time.time() + 60)


# --- subscribing ---------------------------------------------------------------------------------------------


def test_what_is_published_reaches_who_subscribed():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            assert isinstance(await ann.login("ann"), Welcome)
            assert isinstance(await bob.login("bob"), Welcome)
            answer = await ann.ask(Subscribe(2, "s", TopicTarget("news")))
            assert isinstance(answer, Subscribed)
            assert (answer.subscription.stream, answer.subscription.position) == ("topic:news", place(0))
            assert isinstance(await bob.ask(Publish(3, "news", Raw(b'{"a":1}'))), Published)
            got = await ann.next()
            assert (got.stream, got.after, got.through) == ("topic:news", place(0), place(1))
            assert bytes(got.payload) == b'{"a":1}'
            assert w.directory.kept["ann", "s"].position == place(0)

    run(scenario)


def test_equal_targets_share_one_attachment_that_the_last_holder_ends():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            await ann.login("ann", topic("news"))
            await bob.login("bob", topic("news"))
            assert w.topics.attached == ["news"]
            assert isinstance(await ann.ask(Unsubscribe(2, "news")), Done)
            assert w.topics.detached == []
            await bob.ask(Unsubscribe(2, "news"))
            await eventually(lambda: w.topics.detached == ["news"])
            assert not w.hub.streams()
            assert not w.directory.kept

    run(scenario)


def test_disconnecting_does_not_end_a_subscription_and_what_was_missed_comes_first():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
            await eventually(lambda: not w.directory.online)
            for i in range(8):
                w.topics.put("news", b"%d" % i)
            async with w.client() as ann:
                welcome = await ann.login("ann", topic("news", position=place(2)))
                (standing,) = welcome.subscriptions
                assert (standing.position, standing.recovered) == (place(2), True)
                assert await payloads(ann, 6) == [b"2", b"3", b"4", b"5", b"6", b"7"]
                w.topics.put("news", b"8")
                assert await payloads(ann, 1) == [b"8"]

    run(scenario)


def test_one_who_lost_its_position_begins_at_what_it_acknowledged():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
                for i in range(4):
                    w.topics.put("news", b"%d" % i)
                await payloads(ann, 4)
                await ann.say(Ack({"topic:news": place(3)}))
                await ann.ask(Ping(5))
            assert w.directory.acks == [("ann", "news", place(3))]
            async with w.client() as ann:
                welcome = await ann.login("ann")
                assert [s.position for s in welcome.subscriptions] == [place(3)]
                assert await payloads(ann, 1) == [b"3"]

    run(scenario)


def test_what_was_taken_at_the_former_broker_counts_when_it_was_sent_here():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
                (session,) = w.core.users["ann"].sessions
                (follow,) = session.follows.values()
                follow.stop()  # as while it catches up
                for i in range(4):
                    w.topics.put("news", b"%d" % i)
                await ann.say(Ack({"topic:news": place(3)}))
                await ann.say(Ack({"topic:news": place(9)}))  # where the stream has not been
                await ann.say(Ack({"topic:news": place(3)}))
                await ann.ask(Ping(5))
                assert w.directory.acks == []
                follow.start(w.core.holding.replay, None, 0.1)
                await payloads(ann, 4)
            await eventually(lambda: w.directory.acks == [("ann", "news", place(3))])

    run(scenario)


def test_a_subscription_is_resumed_where_it_says_though_its_stream_is_followed_already():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
            await eventually(lambda: not w.directory.online)
            for i in range(4):
                w.topics.put("news", b"%d" % i)
            async with w.client() as ann:
                await ann.login("ann")
                assert await payloads(ann, 4) == [b"0", b"1", b"2", b"3"]
                again = await ann.ask(Subscribe(2, "news", TopicTarget("news"), place(2)))
                assert (again.subscription.position, again.subscription.recovered) == (place(2), True)
                w.topics.put("news", b"4")
                assert await payloads(ann, 3) == [b"2", b"3", b"4"]

    run(scenario)


def test_what_is_gone_is_told_as_a_gap_with_its_count():
    async def scenario():
        async with world(cache_bytes=0) as w, w.client() as keeper:
            await keeper.login("keeper", topic("news"))
            for i in range(6):
                w.topics.put("news", b"%d" % i)
            w.topics.forgotten["topic:news"] = 4
            async with w.client() as ann:
                welcome = await ann.login("ann", topic("news", position=place(1)))
                assert [s.recovered for s in welcome.subscriptions] == [False]
                gap = await ann.next()
                assert isinstance(gap, Gap)
                assert ([h.count for h in gap.holes], gap.reason) == ([3], "retention")
                assert await payloads(ann, 2) == [b"4", b"5"]

    run(scenario)


def test_a_gap_after_a_quiet_span_begins_where_the_client_stands(monkeypatch: pytest.MonkeyPatch):
    """Its position does not go forward by an answer that is not whole: what is between would be a silent hole."""

    async def scenario():
        async with world(cache_bytes=0) as w, w.client() as keeper:
            await keeper.login("keeper", topic("news"))
            for i in range(6):
                w.topics.put("news", b"%d" % i)

            async def quiet_then_gone(stream: str, after: str, through: str) -> Page:
                if after < place(3):
                    return Page((), place(3), False)
                return Page((), through, True, Gap(stream, [Hole(after, through, None)], "unheld"))

            monkeypatch.setattr(w.topics, "replay", quiet_then_gone)
            async with w.client() as ann:
                welcome = await ann.login("ann", topic("news", position=place(1)))
                assert [(s.position, s.recovered) for s in welcome.subscriptions] == [(place(1), False)]
                gap = await ann.next()
                assert isinstance(gap, Gap)
                assert [(h.after, h.through) for h in gap.holes] == [(place(1), place(6))]

    run(scenario)


def test_the_past_that_is_away_at_login_comes_later():
    async def scenario():
        async with world(cache_bytes=0) as w, w.client() as keeper:
            await keeper.login("keeper", topic("news"))
            for i in range(3):
                w.topics.put("news", b"%d" % i)
            w.topics.is_away = True
            async with w.client() as ann:
                await ann.login("ann", topic("news", position=place(1)))
                w.topics.put("news", b"3")
                w.topics.is_away = False
                assert await payloads(ann, 3) == [b"1", b"2", b"3"]

    run(scenario)


def test_one_who_stands_where_its_stream_never_was_is_put_back():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.put("news", b"1")
            welcome = await ann.login("ann", topic("news", position=place(7)))
            assert [(s.position, s.recovered) for s in welcome.subscriptions] == [(place(1), False)]
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(1), None)], "ahead")
            await ann.say(Ack({"topic:news": place(7)}))  # its application has not taken the gap yet
            w.topics.put("news", b"2")
            assert await payloads(ann, 1) == [b"2"]
            await ann.say(Ack({"topic:news": place(2)}))
            await ann.ask(Ping(5))
            assert w.directory.acks == [("ann", "news", place(2))]
            assert w.directory.backs == [("ann", "news", place(1))]
            assert w.directory.kept["ann", "news"].position == place(1)

    run(scenario)


def test_one_who_is_adopted_where_its_stream_never_was_begins_where_that_is_then():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.put("news", b"1")
            await w.residents.adopt("ann", 1, [topic("news", position="zzzz")])
            assert w.directory.backs == [("ann", "news", place(1))]
            w.topics.put("news", b"2")
            welcome = await ann.login("ann")
            assert [(s.position, s.recovered) for s in welcome.subscriptions] == [(place(1), True)]
            assert await payloads(ann, 1) == [b"2"]

    run(scenario)


def test_one_who_is_ahead_of_this_broker_alone_is_not_put_back():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.elsewhere = place(2)
            welcome = await ann.login("ann", topic("news", position=place(2)))
            assert [(s.position, s.recovered) for s in welcome.subscriptions] == [(place(2), True)]
            for number in range(1, 4):
                w.topics.put("news", b"%d" % number)
            assert await payloads(ann, 1) == [b"3"]

    run(scenario)


def test_where_nobody_can_tell_at_login_one_is_put_back_later():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.is_away = True
            welcome = await ann.login("ann", topic("news", position=place(7)))
            assert [(s.position, s.recovered) for s in welcome.subscriptions] == [(place(7), True)]
            w.topics.put("news", b"1")
            w.topics.is_away = False
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(1), None)], "ahead")
            w.topics.put("news", b"2")
            assert await payloads(ann, 1) == [b"2"]

    run(scenario)


def test_one_who_says_only_after_its_login_where_it_stands_is_put_back_too():
    """Its session follows the stream by then, for its user holds it."""

    async def scenario():
        async with world() as w, w.client() as phone, w.client() as ann:
            await phone.login("ann", topic("news"))
            w.topics.put("news", b"1")
            await payloads(phone, 1)
            await ann.login("ann")
            await payloads(ann, 1)
            answer = await ann.ask(Subscribe(2, "news", TopicTarget("news"), place(7)))
            assert (answer.subscription.position, answer.subscription.recovered) == (place(1), False)
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(1), None)], "ahead")
            w.topics.put("news", b"2")
            assert await payloads(ann, 1) == await payloads(phone, 1) == [b"2"]

    run(scenario)


def test_where_nobody_can_tell_one_who_says_so_after_its_login_is_put_back_later():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("news"))
            w.topics.is_away = True
            answer = await ann.ask(Subscribe(2, "news", TopicTarget("news"), place(7)))
            assert (answer.subscription.position, answer.subscription.recovered) == (place(0), True)
            w.topics.put("news", b"1")
            assert await payloads(ann, 1) == [b"1"]
            w.topics.is_away = False
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(1), None)], "ahead")
            w.topics.put("news", b"2")
            assert await payloads(ann, 1) == [b"2"]

    run(scenario)


def test_of_two_subscriptions_of_a_stream_only_the_one_that_is_ahead_is_put_back():
    async def scenario():
        async with world() as w, w.client() as keeper, w.client() as ann:
            await keeper.login("keeper", topic("news"))
            for number in range(1, 4):
                w.topics.put("news", b"%d" % number)
            welcome = await ann.login("ann", topic("news", position=place(1)), topic("news", "mad", place(7)))
            assert {s.id: (s.position, s.recovered) for s in welcome.subscriptions} == {
                "news": (place(1), True),
                "mad": (place(1), False),
            }
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(1), None)], "ahead")
            assert await payloads(ann, 2) == [b"2", b"3"]
            w.topics.put("news", b"4")
            assert await payloads(ann, 1) == [b"4"]

    run(scenario)


def test_one_who_is_put_back_gets_what_waits_for_the_tick_before_it_is_told():
    async def scenario():
        async with world(tick=0.2) as w, w.client() as ann:
            await ann.login("ann", topic("news"))
            w.topics.put("news", b"1")
            await payloads(ann, 1)
            w.topics.put("news", b"2")
            answer = await ann.ask(Subscribe(2, "mad", TopicTarget("news"), place(7)))
            assert isinstance(answer, Subscribed)
            assert await payloads(ann, 1) == [b"2"]
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(2), None)], "ahead")

    run(scenario)


def test_one_whose_stream_is_followed_from_beyond_is_put_back_with_it():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.elsewhere = place(2)
            await ann.login("ann", topic("news", position=place(2)))
            answer = await ann.ask(Subscribe(2, "mad", TopicTarget("news"), place(7)))
            assert (answer.subscription.position, answer.subscription.recovered) == (place(0), False)
            assert await ann.next() == Gap("topic:news", [Hole(place(7), place(0), None)], "ahead")
            w.topics.put("news", b"1")
            assert await payloads(ann, 1) == [b"1"]

    run(scenario)


def test_what_a_client_asks_for_is_told_to_the_coordinator_though_it_was_adopted():
    """The user may have ended it at another broker, which tells that later."""

    async def scenario():
        async with world() as w, w.client() as ann:
            await w.residents.adopt("ann", 1, [topic("news")])
            await ann.login("ann", topic("news"))
            assert w.directory.kept == {}
            await ann.ask(Subscribe(2, "news", TopicTarget("news")))
            assert list(w.directory.kept) == [("ann", "news")]

    run(scenario)


def test_a_second_subscription_of_a_stream_may_begin_earlier():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("news"))
            for i in range(4):
                w.topics.put("news", b"%d" % i)
            await payloads(ann, 4)
            again = await ann.ask(Subscribe(2, "again", TopicTarget("news")))
            assert again.subscription.position == place(4)
            early = await ann.ask(Subscribe(3, "early", TopicTarget("news"), place(1)))
            assert (early.subscription.position, early.subscription.recovered) == (place(1), True)
            w.topics.put("news", b"4")
            assert await payloads(ann, 4) == [b"1", b"2", b"3", b"4"]
            listed = (await ann.ask(ListSubscriptions(4))).subscriptions
            assert {s.id: s.position for s in listed} == dict.fromkeys(["news", "again", "early"], place(5))

    run(scenario)


def test_a_second_subscription_takes_nothing_from_the_first_that_waits_for_the_tick(monkeypatch):
    async def scenario():
        async with world(tick=0.2) as w, w.client() as ann:
            await ann.login("ann", topic("news"))
            w.topics.put("news", b"1")
            assert await payloads(ann, 1) == [b"1"]
            keep = w.directory.keep

            async def slow_keep(user, wanted):
                w.topics.put("news", b"3")  # the second subscription is held, and not followed yet
                await keep(user, wanted)

            monkeypatch.setattr(w.directory, "keep", slow_keep)
            await ann.say(Subscribe(2, "again", TopicTarget("news")))
            w.topics.put("news", b"2")
            assert await payloads(ann, 2) == [b"2", b"3"]
            answer = await ann.next()
            assert answer.subscription.position == place(2)
            again = await ann.next()
            assert (again.after, again.through, bytes(again.payload)) == (place(2), place(3), b"3")

    run(scenario)


def test_what_goes_out_while_a_subscription_is_made_to_stand_comes_to_it_again(monkeypatch):
    """The stream is followed for the user already, from further behind, and passes where the client says it stands."""

    async def scenario():
        async with world(cache_bytes=0) as w:
            async with w.client() as ann:
                await ann.login("ann", topic("news"))
            await eventually(lambda: not w.directory.online)
            w.topics.is_away = True
            for i in range(6):
                w.topics.put("news", b"%d" % i)
            look_around = standing._look_around

            async def slow_look_around(stood, stream):
                w.topics.is_away = False
                await eventually(lambda: stood.session.follows[stream].position == place(6))
                await look_around(stood, stream)

            async with w.client() as ann:
                welcome = await ann.login("ann")
                assert welcome.subscriptions[0].position == place(0)
                monkeypatch.setattr(standing, "_look_around", slow_look_around)
                await ann.say(Subscribe(2, "news", TopicTarget("news"), place(2)))
                assert await payloads(ann, 6) == [b"%d" % i for i in range(6)]
                answer = await ann.next()
                assert (answer.subscription.position, answer.subscription.recovered) == (place(2), True)
                assert await payloads(ann, 4) == [b"2", b"3", b"4", b"5"]

    run(scenario)


def test_sessions_of_one_user_each_get_everything():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("news"))
            welcome = await page.login("ann")
            assert [s.id for s in welcome.subscriptions] == ["news"]
            w.topics.put("news", b"1")
            assert await payloads(phone, 1) == await payloads(page, 1) == [b"1"]
            await phone.ask(Unsubscribe(2, "news"))
            assert (await page.next()).code == "unsubscribed"
            assert (await page.ask(ListSubscriptions(2))).subscriptions == []

    run(scenario)


def test_refusals_of_a_login_and_of_a_request():
    async def scenario():
        async with world(max_subscriptions=2) as w, w.client() as ann:
            welcome = await ann.login(
                "ann", topic("a"), topic("missing"), topic("b"), capabilities=["topic:a", "topic:missing"]
            )
            assert [s.id for s in welcome.subscriptions] == ["a"]
            assert {r.id: r.code for r in welcome.refused} == {"missing": "not-found", "b": "forbidden"}
            assert (await ann.ask(Publish(2, "a", Raw(b"1")))).code == "forbidden"
            assert (await ann.ask(Subscribe(3, "a", TopicTarget("other")))).code == "already-exists"
            assert isinstance(await ann.ask(Subscribe(4, "a2", TopicTarget("a"))), Subscribed)
            over = await ann.ask(Subscribe(5, "a3", TopicTarget("a")))
            assert (over.request, over.code) == (5, "limit-exceeded")
            assert isinstance(await ann.ask(Records(6, "Places", [Raw(b"{}"), Raw(b"{}")])), Accepted)
            assert w.residents.load().records_in_per_s > 0

    run(scenario)


def test_logout_can_forget():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("a"), topic("b"))
            assert isinstance(await ann.ask(Logout(2, forget=True)), Done)
            assert await closed(ann) == 4405
            assert not w.directory.kept
            await eventually(lambda: sorted(w.topics.detached) == ["a", "b"])

    run(scenario)


def test_who_is_forgotten_loses_what_is_kept_and_not_held_here_too():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("a"))
            w.directory.kept["ann", "elsewhere"] = w.directory.kept["bob", "b"] = topic("elsewhere")
            assert isinstance(await ann.ask(Logout(2, forget=True)), Done)
            assert await closed(ann) == 4405
            assert list(w.directory.kept) == [("bob", "b")]
            assert w.directory.asked == [("ann", ("a",))]

    run(scenario)


def test_who_cannot_be_forgotten_everywhere_is_told_so_and_is_here():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("a"), topic("b"))
            w.directory.kept["ann", "elsewhere"] = topic("elsewhere")
            w.directory.is_away = True
            refused = await ann.ask(Logout(2, forget=True))
            assert (type(refused), refused.code) == (Failed, "unavailable")
            assert list(w.directory.kept) == [("ann", "elsewhere")]
            await eventually(lambda: sorted(w.topics.detached) == ["a", "b"])
            w.directory.is_away = False
            assert isinstance(await ann.ask(Logout(3, forget=True)), Done)
            assert not w.directory.kept

    run(scenario)


def test_who_asks_to_be_forgotten_need_not_wait_for_it():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann", *(topic(name) for name in "abc"))
                w.directory.may_drop = asyncio.Event()
                await ann.say(Logout(2, forget=True))
                await eventually(lambda: len(w.core.users["ann"].subscriptions) < 3)
            await eventually(lambda: not w.core.outlets)
            w.directory.may_drop.set()
            await eventually(lambda: sorted(w.topics.detached) == ["a", "b", "c"])
            assert not w.directory.kept

    run(scenario)


# --- who may come ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code", "reason"),
    [
        pytest.param(Login(1), 4400, "unauthenticated", id="nobody is anonymous"),
        pytest.param(Login(1, "nonsense"), 4400, "unauthenticated", id="a token that is none"),
        pytest.param(Login(1, ticket=ticket_of("ann", broker="other")), 4400, "unauthenticated", id="another's ticket"),
        pytest.param(Ping(1), 4404, None, id="login comes first"),
    ],
)
def test_who_is_turned_away(message, code, reason):
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.say(message)
            if reason:
                assert (await ann.next()).code == reason
            assert await closed(ann) == code
            assert not w.core.users.names()

    run(scenario)


def test_a_user_of_another_broker_is_told_which():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.directory.placed["ann"] = Placement("ann", "b2", "http://b2:1", 4, "", "nearest")
            answer = await ann.login("ann")
            assert isinstance(answer, Failed)
            assert (answer.code, answer.url) == ("moved", "http://b2:1")
            assert await closed(ann) == 4100

    run(scenario)


def test_while_the_coordinator_is_away_everyone_with_a_token_is_let_in():
    async def scenario():
        async with world() as w, w.client() as ann:
            w.directory.is_away = True
            assert isinstance(await ann.login("ann", topic("news")), Welcome)
            assert w.directory.unasked == {"ann"}

    run(scenario)


def test_a_ticket_is_good_once_and_each_session_that_confirms_has_arrived():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page, w.client() as thief:
            await w.residents.adopt("ann", 3, [topic("news")])
            ticket = ticket_of("ann", version=3)
            assert [s.id for s in (await phone.ask(Login(1, ticket=ticket, session="phone"))).subscriptions] == ["news"]
            assert isinstance(await page.ask(Login(1, token_of("ann"), ticket, "page")), Welcome)
            await thief.say(Login(1, ticket=ticket, session="tablet"))
            assert await closed(thief) == 4400
            assert isinstance(await phone.ask(Confirm(2)), Done)
            assert w.directory.arrivals == [("ann", 3)]
            await page.ask(Confirm(2))
            assert w.directory.arrivals == [("ann", 3)] * 2
            assert (await phone.ask(Subscribe(3, "x", TopicTarget("x")))).code == "forbidden"

    run(scenario)


def test_a_login_that_was_cut_before_its_welcome_has_not_used_its_ticket():
    async def scenario():
        async with world() as w, w.client() as cut, w.client() as again:
            ticket, login = ticket_of("ann"), {"session": "phone", "subscriptions": [topic("news")]}
            attaching = w.topics.hold_attaching()
            await cut.say(Login(1, token_of("ann"), ticket, **login))
            await eventually(lambda: "ann" in w.core.users)
            await cut.socket.close()
            await eventually(lambda: not w.core.users.get("ann") or not w.core.users["ann"].sessions)
            attaching.set()
            assert isinstance(await again.ask(Login(1, ticket=ticket, session="phone")), Welcome)

    run(scenario)


def test_a_token_that_ends_ends_its_connection_unless_it_was_refreshed():
    async def scenario():
        async with world(idle_timeout=10_000.0) as w, w.client() as ann, w.client() as bob:
            await ann.login("ann")
            await bob.login("bob")
            assert isinstance(await bob.ask(Refresh(2, token_of("bob", ttl_s=6000))), Done)
            assert (await bob.ask(Refresh(3, token_of("ann")))).code == "unauthenticated"
            w.core.wheel.advance(w.core.now() + 700)
            assert await closed(ann) == 4400
            assert isinstance(await bob.ask(Ping(4)), Pong)

    run(scenario)


def test_the_subprotocol_is_required_and_origins_are_checked():
    async def scenario():
        async with world(origins=["https://board.example"]) as w:
            with pytest.raises(InvalidStatus):
                async with w.client(subprotocols=["other"]):
                    pass
            with pytest.raises(InvalidStatus, match="403"):
                async with w.client(origin="https://evil.example"):
                    pass
            async with w.client(origin="https://board.example") as ann:
                assert isinstance(await ann.login(), Welcome)

    run(scenario)


# --- limits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "code"),
    [
        pytest.param("x" * 300_000, 4402, id="too big"),
        pytest.param("{", 4401, id="not JSON"),
        pytest.param('{"type":"dance"}', 4401, id="of no known kind"),
        pytest.param(b'{"type":"publish","request":1,"topic":"t","payload":"\xff"}', 4401, id="not text"),
    ],
)
def test_a_message_that_is_none_ends_the_connection(said, code):
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            await ann.login("ann")
            await bob.login("bob")
            await ann.socket.send(said)
            assert await closed(ann) == code
            assert isinstance(await bob.ask(Ping(2)), Pong)

    run(scenario)


def test_a_login_that_names_two_targets_by_one_id_is_refused():
    async def scenario():
        async with world() as w, w.client() as ann:
            refused = await ann.login("ann", topic("news", "n"), topic("weather", "n"))
            assert isinstance(refused, Failed)
            assert (refused.request, refused.code) == (1, "bad-argument")
            assert await closed(ann) == 4401
            assert not w.core.users

    run(scenario)


def test_of_two_connections_with_one_session_name_the_older_one_stops():
    async def scenario():
        async with world() as w, w.client() as one, w.client() as other, w.client() as another:
            assert isinstance(await one.ask(Login(1, token_of("ann"), session="mine")), Welcome)
            assert isinstance(await another.ask(Login(1, token_of("ann"), session="theirs")), Welcome)
            assert isinstance(await other.ask(Login(1, token_of("ann"), session="mine")), Welcome)
            assert await closed(one) == REPLACED.number
            assert [s.id for s in w.core.users["ann"].sessions] == ["theirs", "mine"]
            assert not comes_back(REPLACED.number)

    run(scenario)


def test_who_sends_faster_than_allowed_is_read_more_slowly_and_loses_nothing():
    async def scenario():
        async with world(max_messages_per_s=100.0) as w, w.client() as ann:
            await ann.login("ann")
            (session,) = w.core.users["ann"].sessions
            await asyncio.gather(*(ann.say(Ping(i)) for i in range(400)))  # whose answers nothing waits for
            await eventually(lambda: not session.outlet.transport.is_reading())
            assert [(await ann.next()).request for _ in range(400)] == list(range(400))
            await eventually(lambda: session.outlet.transport.is_reading())

    run(scenario)


def test_who_is_read_slowly_gets_its_last_answers_though_it_was_moved():
    async def scenario():
        async with world(max_messages_per_s=200.0) as w, w.client() as ann:
            await ann.login("ann")
            (session,) = w.core.users["ann"].sessions
            await asyncio.gather(*(ann.say(Publish(i, "t", Raw(b"1"))) for i in range(600)))
            await eventually(lambda: session.outlet.is_behind)
            session.release()
            assert [(await ann.next()).request for _ in range(600)] == list(range(600))
            assert await closed(ann) == RELEASED.number

    run(scenario)


def test_who_is_read_slowly_is_not_taken_for_silent_and_can_be_ended():
    async def scenario():
        async with world(max_messages_per_s=0.5) as w, w.client() as ann:
            await ann.login("ann")
            (session,) = w.core.users["ann"].sessions
            for i in range(300):
                await ann.say(Ping(i))
            await eventually(lambda: not session.outlet.transport.is_reading())
            silent_s = w.settings.idle_timeout + 2
            w.core.wheel.advance(w.core.now() + silent_s)
            w.core.wheel.advance(w.core.now() + 2 * silent_s)
            assert not session.outlet.is_over
            session.outlet.end(GOING_AWAY)
            assert await closed(ann) == GOING_AWAY.number

    run(scenario)


def test_who_falls_silent_after_it_was_read_slowly_is_found():
    async def scenario():
        async with world(max_messages_per_s=100.0) as w, w.client() as ann:
            await ann.login("ann")
            (session,) = w.core.users["ann"].sessions
            for i in range(400):
                await ann.say(Ping(i))
            await eventually(lambda: not session.outlet.transport.is_reading())
            w.core.wheel.advance(w.core.now() + w.settings.login_timeout + 2)
            assert [(await ann.next()).request for _ in range(400)] == list(range(400))
            w.core.wheel.advance(w.core.now() + 3 * w.settings.idle_timeout)
            assert await closed(ann) == SILENT.number

    run(scenario)


def test_connections_are_limited_by_user_and_in_all():
    async def scenario():
        async with world(max_user_connections=1, max_connections=2) as w, w.client() as one, w.client() as two:
            await one.login("ann")
            await two.login("ann")
            assert await closed(two) == 4004
            await eventually(lambda: len(w.core.outlets) == 1)
            async with w.client():
                with pytest.raises(InvalidStatus, match="503"):
                    async with w.client():
                        pass

    run(scenario)


def test_who_is_late_or_silent_is_closed():
    async def scenario():
        async with world() as w, w.client() as late, w.client() as silent:
            await silent.login("ann")
            w.core.wheel.advance(w.core.now() + 20)
            assert await closed(late) == 4404
            w.core.wheel.advance(w.core.now() + 100)
            assert await closed(silent) == 4002

    run(scenario)


# --- slow readers -----------------------------------------------------------------------------------------------


def test_a_slow_reader_loses_the_oldest_with_a_gap_and_harms_nobody():
    async def scenario():
        sizes = {"write_buffer": 4_000, "outbox_bytes": 100_000, "outbox_hard_bytes": 10**9}
        async with world(**sizes) as w, w.client(max_queue=1) as slow, w.client(max_queue=None) as quick:
            await slow.login("slow", topic("big"))
            await quick.login("quick", topic("big"))
            slow.socket.transport.pause_reading()
            count, payload = 600, b'"' + b"x" * 50_000 + b'"'
            seen = []
            for _ in range(count):
                w.topics.put("big", payload)
                seen.append((await quick.next()).through)
            assert seen == [place(i + 1) for i in range(count)]
            assert w.core.meters.shed > 0
            slow.socket.transport.resume_reading()
            position, taken, gapped = place(0), 0, 0
            while position < place(count):
                message = await slow.next()
                if isinstance(message, Gap):
                    assert message.reason == "slow"
                    assert message.holes[0].after == position
                    gapped += sum(h.count for h in message.holes)
                    position = message.holes[-1].through
                else:
                    assert message.after == position
                    taken, position = taken + 1, message.through
            assert (taken + gapped, gapped > 0) == (count, True)
            w.topics.put("big", b"1")
            assert await payloads(slow, 1) == [b"1"]

    run(scenario)


def test_past_the_hard_limit_it_is_disconnected():
    async def scenario():
        sizes = {"write_buffer": 4_000, "outbox_bytes": 100_000, "outbox_hard_bytes": 3_000_000}
        async with world(**sizes) as w, w.client(max_queue=1) as slow:
            await slow.login("slow", topic("big"))
            slow.socket.transport.pause_reading()
            for _ in range(400):
                w.topics.put("big", b'"' + b"x" * 50_000 + b'"')
                await asyncio.sleep(0)
            await eventually(lambda: w.core.closes["slow"] == 1)
            assert w.hub["topic:big"].followers == 0
            slow.socket.transport.resume_reading()
            assert await closed(slow) == 4001

    run(scenario)


@pytest.mark.parametrize("way", ["closes", "half-closes", "reads nothing past the hard limit"])
def test_one_that_is_over_and_does_not_read_is_cut(way):
    async def scenario():
        limit = 10**9 if "closes" in way else 300_000
        sizes = {"write_buffer": 4_000, "outbox_bytes": 100_000, "outbox_hard_bytes": limit}
        async with world(**sizes) as w, w.client(max_queue=1, close_timeout=0.1) as slow:
            await slow.login("slow", topic("big"))
            (outlet,) = w.core.outlets
            slow.socket.transport.pause_reading()
            for _ in range(400):
                w.topics.put("big", b'"' + b"x" * 50_000 + b'"')
                await asyncio.sleep(0)
            if way == "closes":
                slow.socket.transport.write(Frame(Opcode.CLOSE, (1000).to_bytes(2)).serialize(mask=True))
            elif way == "half-closes":
                slow.socket.transport.write_eof()
            await eventually(lambda: outlet.is_over)
            assert not w.core.users["slow"].sessions
            assert outlet in w.core.outlets
            w.core.wheel.advance(w.core.now() + w.settings.login_timeout + 2)
            await eventually(lambda: not w.core.outlets)

    run(scenario)


# --- the coordinator's wishes -------------------------------------------------------------------------------------


def test_send_tells_every_session_and_ends_when_they_left():
    async def scenario():
        async with world() as w, w.client() as phone, w.client() as page:
            await phone.login("ann", topic("news"))
            await page.login("ann")
            ticket = ticket_of("ann", 2, "b2")
            sending = asyncio.create_task(w.residents.send("ann", 2, BrokerInfo("b2", "http://b2:1"), ticket))
            moves = [await phone.next(), await page.next()]
            assert {(move.broker, move.url) for move in moves} == {("b2", "http://b2:1")}
            tickets = [read_ticket(move.ticket, SECRET) for move in moves]
            assert [(one.user, one.broker, one.version) for one in tickets] == [("ann", "b2", 2)] * 2
            assert [one.session for one in tickets] == [s.id for s in w.core.users["ann"].sessions]
            assert tickets[0].number != tickets[1].number
            w.topics.put("news", b"1")
            assert await payloads(phone, 1) == [b"1"]
            await phone.socket.close()
            assert not sending.done()
            await page.socket.close()
            await sending

    run(scenario)


def test_release_closes_and_lets_go_unless_it_is_old():
    async def scenario():
        async with world() as w, w.client() as ann:
            await w.residents.adopt("ann", 5, [topic("news")])
            await ann.login("ann")
            await w.residents.release("ann", 4)
            assert isinstance(await ann.ask(Ping(2)), Pong)
            assert [(h.user, h.streams) for h in w.residents.holdings()] == [("ann", ["topic:news"])]
            await w.residents.release("ann", 6)
            assert await closed(ann) == 4101
            assert w.topics.detached == ["news"]
            assert w.residents.users() == []
            assert [(h.user, h.streams) for h in w.residents.holdings()] == [("ann", None)]

    run(scenario)


def test_release_waits_for_records_under_way_and_takes_nothing_that_changes_what_is_held():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as page:
            w.topics.may_record = asyncio.Event()
            for client in (ann, page):
                await client.login("ann")
                await client.say(Records(2, "Reports", [Raw(b"{}")]))
                assert isinstance(await client.ask(Ping(3)), Pong)
            await w.residents.release("ann", 1)
            draining = asyncio.create_task(w.server.drain(w.residents, asyncio.Event()))
            await page.say(Unsubscribe(4, "s"))
            assert await closed(page) == 4101
            assert not draining.done()
            w.topics.may_record.set()
            assert await ann.next() == Accepted(2, 1, 0)
            assert await closed(ann) == 4101
            await draining

    run(scenario)


@pytest.mark.parametrize("later", [[], [ListSubscriptions(5)]], ids=["alone", "with another behind it"])
def test_release_answers_records_though_a_subscription_is_being_made_beside_them(later):
    async def scenario():
        async with world() as w, w.client() as ann:
            w.topics.may_record, may_attach = asyncio.Event(), w.topics.hold_attaching()
            await ann.login("ann")
            for message in [Records(2, "Reports", [Raw(b"{}")]), Subscribe(3, "news", TopicTarget("news")), *later]:
                await ann.say(message)
            assert isinstance(await ann.ask(Ping(4)), Pong)
            await w.residents.release("ann", 1)
            may_attach.set()
            w.topics.may_record.set()
            assert await ann.next() == Accepted(2, 1, 0)
            assert await closed(ann) == 4101
            assert not w.directory.kept
            assert not w.hub.streams()

    run(scenario)


def test_release_does_not_wait_for_records_without_end():
    async def scenario():
        async with world(login_timeout=0.1) as w, w.client() as ann:
            w.topics.may_record = asyncio.Event()
            await ann.login("ann")
            await ann.say(Records(2, "Reports", [Raw(b"{}")]))
            assert isinstance(await ann.ask(Ping(3)), Pong)
            await w.residents.release("ann", 1)
            assert await closed(ann) == 4101

    run(scenario)


def test_load_counts_a_stream_once_in_and_for_each_subscriber_out():
    async def scenario():
        async with world() as w, w.client() as ann, w.client() as bob:
            await ann.login("ann", topic("news"))
            await bob.login("bob", topic("news"))
            w.topics.put("news", b'"' + b"x" * 98 + b'"')
            await payloads(ann, 1)
            load = w.residents.load()
            assert load.connections == 2
            assert load.model_out_per_s == pytest.approx(2 * load.model_in_per_s, rel=0.01)
            assert load.wire_out_per_s > load.model_out_per_s
            assert w.residents.rates() == {"topic:news": pytest.approx(100 / w.settings.rate_window, rel=0.05)}
            assert w.residents.rates() == {}

    run(scenario)


def test_who_is_connected_and_follows_nothing_is_told_as_online():
    async def scenario():
        async with world() as w:
            async with w.client() as ann:
                await ann.login("ann")
                for is_full in (False, True):
                    assert [(h.user, h.streams) for h in w.residents.holdings(is_full=is_full)] == [("ann", [])]
            await eventually(lambda: w.residents.users() == [])
            assert [(h.user, h.streams) for h in w.residents.holdings()] == [("ann", None)]
            assert list(w.residents.holdings(is_full=True)) == []

    run(scenario)


def test_a_stream_that_nobody_holds_any_more_has_no_rate():
    async def scenario():
        async with world() as w, w.client() as ann:
            await ann.login("ann", topic("news"))
            w.topics.put("news", b'"1"')
            await payloads(ann, 1)
            assert w.residents.rates().keys() == {"topic:news"}
            await w.residents.release("ann", 1)
            assert w.residents.rates() == {"topic:news": 0.0}
            assert w.residents.rates() == {}
            assert w.residents.rates(is_full=True) == {}

    run(scenario)


def test_a_stopping_broker_is_not_ready_and_says_why_it_closes():
    async def scenario():
        async with world(drain_timeout=0.05) as w, w.client() as ann:
            await ann.login("ann")
            await w.server.drain(w.residents, asyncio.Event())
            assert w.directory.is_drained
            async with w.client() as bob:
                assert (await bob.login("bob")).code == "unavailable"
            await w.server.stop()
            assert await closed(ann) == 4000

    run(scenario)


def test_a_peer_needs_no_place_and_holds_nothing_after_it_left():
    async def scenario():
        async with world() as w:
            async with w.client() as peer:
                await peer.login("b2", topic("news"), capabilities=["broker:b2", "topic:*"])
                w.topics.put("news", b"1")
                assert await payloads(peer, 1) == [b"1"]
                assert (w.directory.online, w.directory.kept, w.residents.users()) == (set(), {}, [])
            await eventually(lambda: w.topics.detached == ["news"])

    run(scenario)


@pytest.mark.parametrize("id", ["", ".", "..", "a\nb", "\0", "x" * 256])
def test_an_id_that_the_coordinator_would_not_keep_is_refused_before_it_is_held(id):
    async def scenario():
        async with world() as w, w.client() as client:
            await client.login()
            answer = await client.ask(Subscribe(2, id, TopicTarget("news")))
            assert (answer.code, answer.request) == ("bad-argument", 2)
            assert not w.directory.kept
            assert not w.core.users["ann"].subscriptions

    run(scenario)


@pytest.mark.parametrize(
    "message",
    [
        Login(1, token_of("ann"), session="x" * 256),
        Login(1, token_of("ann"), subscriptions=[topic("news", position="f" * 65)]),
    ],
)
def test_what_a_client_makes_the_system_remember_is_short(message):
    async def scenario():
        async with world() as w, w.client() as client:
            assert (await client.ask(message)).code == "bad-message"
            assert await closed(client) == BAD_MESSAGE.number

    run(scenario)
