"""What a seed says."""

from itertools import pairwise

import pytest

from tocsin.chaos.schedule import BLOW_S, LENGTH_S, QUIET_S, SURE, Kind, seeds_of, story


def test_the_same_seed_tells_the_same_story_and_others_tell_others():
    assert story(7) == story(7)
    assert len({story(seed).steps for seed in range(50)}) == 50


def test_steps_are_in_order_and_leave_the_beginning_quiet():
    for seed in range(50):
        times = [step.at_s for step in story(seed).steps]
        assert all(first <= second for first, second in pairwise(times))
        assert times[0] >= QUIET_S
        assert times[-1] <= LENGTH_S + BLOW_S


def test_five_seeds_in_a_row_have_every_grave_fault():
    for first in (0, 3, 11):
        kinds = {step.kind for seed in range(first, first + 5) for step in story(seed).steps}
        assert kinds >= set(SURE)


def test_some_moves_are_hit_half_way():
    hit = 0
    for seed in range(40):
        for first, second in pairwise(story(seed).steps):
            is_move, is_blow = first.kind in (Kind.MOVE, Kind.SHUFFLE), second.kind is Kind.KILL_BROKER
            hit += is_move and is_blow and second.at_s - first.at_s <= BLOW_S
    assert hit >= 5


def test_many_seeds_have_every_kind():
    assert {step.kind for seed in range(40) for step in story(seed).steps} == set(Kind)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", range(3, 4)),
        ("3:7", range(3, 8)),
        ("3:3", range(3, 4)),
        ("7:3", None),
        ("", None),
        ("a:b", None),
        ("3:", None),
        (":3", None),
        ("-1:3", None),
    ],
)
def test_ranges_of_seeds(text, expected):
    assert seeds_of(text) == expected
