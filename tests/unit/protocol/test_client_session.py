"""What only a clock and dice of one's own can show; the rest of the session's rules are the conformance stories'."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tocsin.config import Client
from tocsin.errors import AlreadyExists, NotFound, SessionEnded, TocsinError, Uncertain
from tocsin.protocol import client_actions as do
from tocsin.protocol import messages
from tocsin.protocol.client_session import ClientSession
from tocsin.protocol.codec import encoded, from_client
from tocsin.protocol.targets import TopicTarget

NEWS = TopicTarget("news")
SETTINGS = Client(backoff_min=1.0, backoff_max=8.0, stable_after=5.0, ack_interval=1.0)


class Highest(Random):
    """Always draws the most."""

    def uniform(self, a: float, b: float) -> float:
        return b


def session(rng: Random | None = None, **options: object) -> ClientSession:
    return ClientSession(SETTINGS, rng or Random(0), session="s", url="http://a", **options)  # type: ignore[arg-type]


def sent(actions: list[do.Action]) -> list[messages.FromClient]:
    return [action.message for action in actions if isinstance(action, do.Send)]


def welcome(core: ClientSession, now: float, link: int, request: int, ping_s: float = 25.0) -> list[do.Action]:
    told = messages.Welcome(request, "ann", "a", "s", ping_s, [])
    return core.received(now, link, encoded(told))


def connected(core: ClientSession, now: float = 0.0) -> int:
    (opened,) = (action for action in core.start(now) if isinstance(action, do.Open))
    (login,) = sent(core.opened(now, opened.link, None))
    welcome(core, now, opened.link, login.request)  # type: ignore[union-attr]
    return opened.link


def test_pauses_double_up_to_the_bound_and_are_short_again_after_a_good_connection() -> None:
    core = session(Highest())
    link, now = connected(core), 0.0
    pauses = []
    for _ in range(6):
        core.closed(now, link, 1006)
        due = core.deadline()
        assert due is not None
        pauses.append(due - now)
        now = due
        (opened,) = (action for action in core.tick(now) if isinstance(action, do.Open))
        link = opened.link
    assert pauses == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    (login,) = sent(core.opened(now, link, None))
    welcome(core, now, link, login.request)  # type: ignore[union-attr]
    core.closed(now + 1.0, link, 1006)
    assert core.deadline() == now + 9.0  # it lasted too short a time to count
    now += 9.0
    (opened,) = (action for action in core.tick(now) if isinstance(action, do.Open))
    (login,) = sent(core.opened(now, opened.link, None))
    welcome(core, now, opened.link, login.request)  # type: ignore[union-attr]
    core.closed(now + 5.0, opened.link, 1006)
    assert core.deadline() == now + 6.0


def test_pauses_are_drawn_from_nothing_on() -> None:
    drawn = []
    for seed in range(200):
        core = session(Random(seed))
        core.closed(0.0, connected(core), 4000)
        drawn.append(core.deadline() or 0.0)
    assert min(drawn) < 0.1
    assert max(drawn) > 0.9
    assert all(0.0 <= pause <= 1.0 for pause in drawn)


def test_each_subscription_that_waits_has_pauses_of_its_own() -> None:
    core = session(Highest())
    link = connected(core)
    for number in range(3):
        (subscribe,) = sent(core.subscribe(0.0, "key", f"n{number}", NEWS))
        core.received(0.0, link, encoded(messages.Failed("unavailable", "away", subscribe.request)))  # type: ignore[union-attr]
    again = [message for message in sent(core.tick(1.0)) if isinstance(message, messages.Subscribe)]
    assert {one.id for one in again} == {"n0", "n1", "n2"}
    core.received(1.0, link, encoded(messages.Failed("unavailable", "away", again[0].request)))
    assert core.tick(2.9) == []
    assert [(type(m), m.id) for m in sent(core.tick(3.0))] == [(messages.Subscribe, again[0].id)]  # type: ignore[union-attr]


def test_what_a_broker_asks_to_wait_is_added() -> None:
    core = session(Highest())
    (opened,) = core.start(0.0)
    assert isinstance(opened, do.Open)
    (login,) = sent(core.opened(0.0, opened.link, None))
    core.received(0.0, opened.link, encoded(messages.Failed("limit-exceeded", "full", login.request, 7.0)))  # type: ignore[union-attr]
    core.closed(0.0, opened.link, 4004)
    assert core.deadline() == 8.0


def test_acknowledgements_of_a_second_leave_together() -> None:
    core = session()
    link = connected(core)
    (subscribe,) = sent(core.subscribe(0.0, "key", "n", NEWS))
    standing = messages.Standing("n", NEWS, "topic:news", "0")
    core.received(0.0, link, encoded(messages.Subscribed(subscribe.request, standing)))  # type: ignore[union-attr]
    for n in range(5):
        core.received(0.0, link, encoded(messages.Notification("topic:news", str(n), str(n + 1), Raw(b"1"))))
    assert sent(core.tick(1.0)) == [messages.Ack({"topic:news": "0"})]  # where it begins
    for _ in range(3):
        core.take(10.0, "n")
    assert core.tick(10.9) == []
    assert core.deadline() == 11.0
    assert sent(core.tick(11.0)) == [messages.Ack({"topic:news": "3"})]
    assert sent(core.tick(12.0)) == []
    assert core.positions == {"n": "3"}


@pytest.mark.parametrize(
    ("lasts_s", "due"),
    [
        pytest.param(3600.0, 3540.0, id="a minute before the end"),
        pytest.param(100.0, 80.0, id="at four fifths of a short life"),
        pytest.param(-5.0, 1.0, id="after a pause where it has ended, for it may be the same again"),
    ],
)
def test_when_a_token_is_renewed(lasts_s: float, due: float) -> None:
    core = ClientSession(
        replace(SETTINGS, login_timeout=9999.0), Random(0), session="s", url="http://a", can_renew=True
    )
    (opened,) = core.start(0.0)
    assert isinstance(opened, do.Open)
    core.opened(0.0, opened.link, "token", lasts_s)
    assert core.deadline() == due
    assert do.RenewToken() in core.tick(due)


def test_no_token_is_renewed_once_it_is_over() -> None:
    """One that was asked for before may still come, or fail."""
    core = session(can_renew=True)
    core.closed(0.0, connected(core), 4401)
    assert core.not_renewed(1.0) == []
    assert core.renewed(2.0, "token", 10.0) == []
    assert core.renewed(3.0, "token", 10.0, "key") == [do.Answer("key", None)]
    assert core.deadline() is None


def test_what_is_asked_twice_or_for_nothing() -> None:
    core = session()
    core.subscribe(0.0, "key", "n", NEWS)
    with pytest.raises(AlreadyExists):
        core.subscribe(0.0, "key", "n", NEWS)
    with pytest.raises(NotFound):
        core.unsubscribe(0.0, "key", "m")
    core.close(0.0)
    with pytest.raises(SessionEnded):
        core.request(0.0, "key", messages.ListSubscriptions)


def test_an_answer_is_uncertain_whoever_lost_it() -> None:
    def failure(actions: list[do.Action]) -> TocsinError:
        (failed,) = (action for action in actions if isinstance(action, do.Fail))
        return failed.error

    core = session()
    link = connected(core)
    (first,) = sent(core.request(0.0, "first", lambda n: messages.Publish(n, "news", Raw(b"1"))))
    core.request(0.0, "second", lambda n: messages.Publish(n, "news", Raw(b"2")))
    told = messages.Failed("uncertain", "the topic's owner went away", first.request)  # type: ignore[union-attr]
    by_broker = failure(core.received(0.0, link, encoded(told)))
    by_link = failure(core.closed(0.0, link, 1006))
    assert (type(by_broker), type(by_link)) == (Uncertain, Uncertain)
    assert str(by_broker) == "the topic's owner went away"
    assert str(by_link) == "the request: the connection broke before the answer; it may have been done or not"


STEP = st.sampled_from(["open", "welcome", "abort", "close", "release", "move", "done", "error", "junk", "wait", "ask"])


@given(st.lists(STEP, max_size=40), st.integers(0, 2**16))
def test_no_order_of_events_leaves_it_without_something_to_wait_for(script: list[str], seed: int) -> None:
    """After whatever happened, the session is served, on its way, or has a time at which it goes on."""
    core, now = session(Random(seed), has_coordinator=True), 0.0
    links: dict[int, list[int]] = {}  # connections → numbers of requests without an answer
    asking = False

    def carry_out(actions: list[do.Action]) -> None:
        nonlocal asking
        for action in actions:
            match action:
                case do.Open(link, _):
                    links[link] = []
                case do.Close(link, _):
                    links.pop(link, None)
                case do.Send(link, message):
                    assert from_client(encoded(message)) == message
                    number = getattr(message, "request", None)
                    if number is not None:
                        links[link].append(number)
                case do.Locate():
                    asking = True
                case do.End():
                    raise AssertionError("nothing here ends a session")

    carry_out(core.start(now))
    for step in script:
        now += 0.1
        link = max(links, default=0)
        number = links[link][0] if links.get(link) else 0
        if asking:
            asking = False
            carry_out(core.located(now, "http://b", "t") if seed % 2 else core.not_located(now, "away"))
        elif step == "open":
            carry_out(core.opened(now, link, "token"))
        elif step == "welcome":
            links.get(link, []).clear()
            carry_out(welcome(core, now, link, number))
        elif step == "done":
            links.get(link, [0])[:1] = []
            carry_out(core.received(now, link, encoded(messages.Done(number))))
        elif step == "error":
            carry_out(core.received(now, link, encoded(messages.Failed("x", "y", number))))
        elif step == "move":
            carry_out(core.received(now, min(links, default=0), encoded(messages.Move("b", "http://b", "t"))))
        elif step == "junk":
            carry_out(core.received(now, link, b"junk"))
        elif step in ("abort", "close", "release"):
            links.pop(link, None)
            carry_out(core.closed(now, link, {"abort": 1006, "close": 4000, "release": 4101}[step]))
        elif step == "ask":
            carry_out(core.request(now, object(), messages.ListSubscriptions))
        elif (due := core.deadline()) is not None:
            now = max(now, due)
            carry_out(core.tick(now))
        assert asking or links or core.deadline() is not None
