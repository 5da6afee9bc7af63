"""An application sees every notification once and in order, or a gap that covers it, whatever arrives how often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tocsin.protocol.inbox import Delivered, Inbox, Item, Missed
from tocsin.protocol.messages import Gap, Hole, Notification, Standing
from tocsin.protocol.targets import TopicTarget

S = "topic:news"
LAST = 12


def place(number: int) -> str:
    return f"{number:03}"


def standing(position: int, stream: str = S, *, recovered: bool = True) -> Standing:
    return Standing("n", TopicTarget("news"), stream, place(position), recovered)


def notification(after: int, through: int) -> Notification:
    return Notification(S, place(after), place(through), Raw(b"%d" % through))


def gap(*holes: tuple[int, int, int | None], reason: str = "slow") -> Gap:
    return Gap(S, [Hole(place(after), place(through), count) for after, through, count in holes], reason)


def inbox(position: int = 0, max_items: int = 1000, max_bytes: int = 1_000_000) -> Inbox:
    made = Inbox("n", max_items, max_bytes)
    made.stand(standing(position))
    return made


def drained(box: Inbox) -> list[Item]:
    return list(iter(box.take, None))


def spans(items: list[Item]) -> list[tuple[str, str, str]]:
    return [(item.after, item.through, getattr(item, "reason", "")) for item in items]


POSITION = st.integers(0, LAST)
SPAN = st.tuples(POSITION, POSITION)
MESSAGE = st.one_of(
    SPAN.map(lambda span: notification(*span)),
    st.lists(st.tuples(POSITION, POSITION, st.none() | st.integers(0, 9)), max_size=4).map(lambda holes: gap(*holes)),
)


@given(st.lists(MESSAGE | st.just("take"), max_size=40), st.integers(1, 6))
def test_items_join_without_a_hole_or_an_echo_whatever_comes(script: list[object], max_items: int) -> None:
    box = inbox(max_items=max_items)
    seen: list[Item] = []
    for step in script:
        if isinstance(step, Notification):
            box.deliver(step)
        elif isinstance(step, Gap):
            box.announce(step)
        elif (item := box.take()) is not None:
            seen.append(item)
        assert len(box) <= max(max_items, 1)
    seen += drained(box)
    assert [item.after for item in seen] == [place(0), *(item.through for item in seen)][: len(seen)]
    assert all(item.after < item.through for item in seen)
    assert box.taken == box.position == (seen[-1].through if seen else place(0))


@given(st.data())
def test_a_stream_that_is_sent_twice_and_resumed_anywhere_is_seen_once(data: st.DataObject) -> None:
    """Two brokers send the same stream, each from a place where the client has stood."""
    box = inbox()
    senders = [0, 0]
    for _ in range(60):
        who = data.draw(st.integers(0, 1))
        if data.draw(st.integers(0, 9)) == 0:
            senders[who] = data.draw(st.integers(0, int(box.position or "0")))
        if senders[who] < LAST:
            box.deliver(notification(senders[who], senders[who] + 1))
            senders[who] += 1
    seen = drained(box)
    assert [item.through for item in seen] == [place(n + 1) for n in range(len(seen))]
    assert all(isinstance(item, Delivered) for item in seen)


def test_bytes_are_bounded_as_well() -> None:
    box = inbox(max_bytes=10)
    for n in range(5):
        box.deliver(Notification(S, place(n), place(n + 1), Raw(b'"12345"')))
    first, last = drained(box)
    assert isinstance(first, Missed)
    assert (first.count, first.through, last.through) == (4, place(4), place(5))


def test_one_item_that_is_too_big_alone_is_kept() -> None:
    box = inbox(max_bytes=10)
    box.deliver(Notification(S, place(0), place(1), Raw(b'"' + b"x" * 100 + b'"')))
    assert isinstance(box.take(), Delivered)


def test_a_gap_of_unknown_size_makes_the_sum_unknown() -> None:
    box = inbox(max_items=1)
    box.announce(gap((0, 2, None)))
    box.deliver(notification(2, 3))
    assert [(item.count, item.through) for item in drained(box)] == [(None, place(3))]


def test_announced_holes_without_end_do_not_take_memory_without_end() -> None:
    box = inbox()
    box.announce(Gap(S, [Hole(f"1{n:09}", f"1{n:09}x", 1) for n in range(20_000)], "slow"))
    (item,) = drained(box)
    assert (item.after, item.through) == (place(0), f"1{19_999:09}x")
    box.deliver(Notification(S, f"1{19_999:09}x", "2", Raw(b"1")))
    assert spans(drained(box)) == [(f"1{19_999:09}x", "2", "")]


def test_positions_taken_lag_behind_those_received() -> None:
    box = inbox()
    box.deliver(notification(0, 1))
    box.deliver(notification(1, 2))
    assert (box.position, box.taken) == (place(2), place(0))
    box.take()
    assert box.taken == place(1)


def test_who_is_led_back_has_taken_nothing_of_what_will_be_there_until_it_knows():
    box = inbox(7)
    assert box.announce(gap((7, 1, None), reason="ahead"))
    for at in range(1, 8):
        box.deliver(notification(at, at + 1))
    assert box.is_turned
    first = box.take()
    assert isinstance(first, Missed)
    assert (first.reason, first.through, box.taken) == ("ahead", place(1), place(1))
    assert not box.is_turned


def test_that_a_stream_led_back_is_told_though_the_application_was_slow():
    box = inbox(7, max_items=2)
    box.announce(gap((7, 1, None), reason="ahead"))
    for at in range(1, 5):
        box.deliver(notification(at, at + 1))
    first, second = drained(box)
    assert isinstance(first, Missed)
    assert (first.reason, first.through, second.through) == ("ahead", place(4), place(5))
    assert not box.is_turned


def test_what_was_taken_of_another_stream_is_nothing_of_this_one():
    box = inbox()
    box.deliver(notification(0, 9))
    box.stand(standing(2, "topic:other"))
    assert box.take() == Delivered("n", S, place(0), place(9), b"9")
    assert box.taken is None
    assert isinstance(box.take(), Missed)
    assert box.taken == place(2)
