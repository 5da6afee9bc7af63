import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.broker.entries import Entry, body_of, control, frame_of, from_position, gap, notification
from tocsin.broker.outbox import Outbox, OutboxLimits
from tocsin.broker.shedding import POLICIES, OldestFirst, without
from tocsin.config import Broker
from tocsin.protocol.codec import from_broker
from tocsin.protocol.messages import Gap, Hole


def line(stream: str, *numbers: int, size: int = 10) -> list[Entry]:
    return [notification(stream, f"{n - 1:03}", f"{n:03}", b"7" * size) for n in numbers]


def told(entries: list[Entry]) -> list[str]:
    """Entries in short: ``a1`` is a notification, ``a1-3x3`` a hole over three."""
    short = []
    for e in entries:
        name, last = e.stream or "answer", e.through.lstrip("0")
        short.append(f"{name}{int(e.after) + 1}-{last}x{e.count}" if e.is_shed else f"{name}{last}")
    return short


@pytest.mark.parametrize(
    ("waiting", "dropped", "left"),
    [
        pytest.param(line("a", 1, 2, 3), {0, 1}, ["a1-2x2", "a3"], id="neighbours are one hole"),
        pytest.param(line("a", 1, 2, 3), {0, 2}, ["a1-1x1", "a2", "a3-3x1"], id="holes stand where things stood"),
        pytest.param(
            [*line("a", 1), *line("b", 1), *line("a", 2)], {0, 2}, ["a1-2x2", "b1"], id="another stream is not between"
        ),
        pytest.param(
            [*line("a", 1), control(b"x"), *line("a", 2, 3)],
            {0, 2, 3},
            ["a1-1x1", "answer", "a2-3x2"],
            id="an answer is: it may begin a subscription",
        ),
    ],
)
def test_holes(waiting, dropped, left):
    assert told(without(waiting, dropped)) == left


def test_a_hole_of_unknown_size_stays_unknown():
    lost = gap("a", "001", [Hole("001", "009", None)], "owner")
    (hole,) = without([*line("a", 1), lost], {0, 1})
    assert (hole.after, hole.through, hole.count) == ("000", "009", None)


def test_what_was_shed_leaves_as_a_gap():
    (hole,) = without(line("a", 1, 2), {0, 1})
    assert from_broker(body_of(frame_of(hole))) == Gap("a", [Hole("000", "002", 2)], "slow")


def test_the_oldest_go_first_and_answers_stay():
    waiting = [*line("a", 1), control(b"x" * 100), *line("a", 2, 3)]
    assert OldestFirst().choose(waiting, len(waiting[0].frame) + 1) == {0, 2}
    assert OldestFirst().choose(waiting, 10**9) == {0, 2, 3}


def test_every_policy_that_can_be_configured_exists():
    assert Broker().shedding in POLICIES


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 300)), max_size=60),
    st.integers(500, 3000),
    st.lists(st.booleans(), max_size=60),
)
def test_what_goes_in_comes_out_or_is_in_a_hole(pushed, soft_bytes, takes):
    box = Outbox(OutboxLimits(soft_bytes, 10**9, 500))
    last = {"a": 0, "b": 0}
    out: list[Entry] = []
    shed = 0
    for i, (stream, size) in enumerate(pushed):
        last[stream] += 1
        shed += box.push(line(stream, last[stream], size=size))
        assert box.waiting_bytes <= soft_bytes + 200 * len(last)
        if i < len(takes) and takes[i]:
            out.extend(box.take())
    while len(box):
        out.extend(box.take())
    for stream, count in last.items():
        mine = [e for e in out if e.stream == stream]
        assert [e.after for e in mine] == ["000", *(e.through for e in mine)][: len(mine)]
        assert sum(e.count for e in mine) == count
    assert shed == sum(e.count for e in out if e.is_shed)
    assert box.waiting_bytes == 0


def test_past_the_hard_limit_counting_what_was_shed():
    box = Outbox(OutboxLimits(1_000, 3_000, 500))
    for n in range(1, 9):
        box.push(line("a", n, size=200))
    assert (box.waiting_bytes <= 1_000, box.is_over) == (True, False)
    box.push(line("a", 9, size=1_000))
    assert box.is_over


@pytest.mark.parametrize("size", [1, 200, 70_000])
def test_one_who_stands_earlier_gets_the_same_from_there(size):
    (entry,) = line("a", 5, size=size)
    message = from_broker(body_of(from_position(entry, "002").frame))
    assert (message.after, message.through, bytes(message.payload)) == ("002", "005", b"7" * size)
    assert from_position(entry, "004") is entry
    lost = gap("a", "004", [Hole("004", "006", 2), Hole("007", "009", 1)], "owner")
    assert from_broker(body_of(from_position(lost, "002").frame)).holes[0] == Hole("002", "006", 2)
