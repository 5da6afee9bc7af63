"""The timetable: what is due when, told in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.datacluster.schedule import Schedule


def schedule(**changed: float) -> Schedule:
    return Schedule(**{"min_gap_s": 0.0, "backoff_min_s": 1.0, "backoff_max_s": 8.0, **changed})


def started(timetable: Schedule, now: float) -> list[int]:
    return sorted(c for members in timetable.start_due(now).values() for c in members)


def test_a_periodic_channel_is_due_at_multiples_of_its_period() -> None:
    timetable = schedule()
    timetable.add(1, "g", 10.0, now=0.0)
    assert started(timetable, 9.9) == []
    assert started(timetable, 10.0) == [1]
    timetable.finished(1, 10.5, has_more=False)
    assert started(timetable, 19.9) == []
    assert started(timetable, 20.0) == [1]


def test_an_execution_longer_than_its_period_coalesces_ticks_and_goes_on() -> None:
    timetable = schedule()
    timetable.add(1, "g", 10.0, now=0.0)
    assert started(timetable, 10.0) == [1]
    assert started(timetable, 45.0) == []  # still running: the ticks at 20, 30 and 40 are one
    timetable.finished(1, 46.0, has_more=True)
    assert timetable.coalesced(1) == 3
    assert started(timetable, 50.0) == [1]


def test_lag_is_the_age_of_the_oldest_due_tick() -> None:
    timetable = schedule()
    timetable.add(1, "g", 10.0, now=0.0)
    timetable.start_due(12.0)
    assert timetable.lag_s(1, 15.0) == pytest.approx(5.0)
    timetable.finished(1, 15.0, has_more=False)
    assert timetable.lag_s(1, 16.0) == 0.0


def test_a_continuous_channel_runs_when_data_arrives_and_takes_what_came_meanwhile() -> None:
    timetable = schedule()
    timetable.add(1, "g", None, now=0.0)
    assert started(timetable, 0.0) == [1]
    timetable.finished(1, 0.1, has_more=False)
    assert started(timetable, 5.0) == []
    timetable.arrived(1, 6.0)
    assert started(timetable, 6.0) == [1]
    timetable.arrived(1, 6.1)
    assert started(timetable, 6.1) == []
    timetable.finished(1, 6.2, has_more=False)
    assert started(timetable, 6.2) == [1]


def test_a_continuous_channel_leaves_the_gap_between_starts() -> None:
    timetable = schedule(min_gap_s=0.5)
    timetable.add(1, "g", None, now=0.0)
    timetable.start_due(0.0)
    timetable.finished(1, 0.1, has_more=True)
    assert started(timetable, 0.2) == []
    assert timetable.next_wake() == pytest.approx(0.5)
    assert started(timetable, 0.5) == [1]


def test_channels_of_one_group_that_are_due_start_together() -> None:
    timetable = schedule()
    for channel, group in ((1, "a"), (2, "a"), (3, "b")):
        timetable.add(channel, group, 10.0, now=0.0)
    assert timetable.start_due(10.0) == {"a": [1, 2], "b": [3]}


def test_a_failing_channel_backs_off_alone_and_the_others_go_on() -> None:
    timetable = schedule()
    timetable.add(1, "a", None, now=0.0)
    timetable.add(2, "a", None, now=0.0)
    timetable.start_due(0.0)
    timetable.finished(2, 0.1, has_more=False)
    assert [timetable.failed(1, 0.0)] == [1.0]
    timetable.arrived(2, 0.2)
    assert started(timetable, 0.2) == [2]
    timetable.finished(2, 0.3, has_more=False)
    timetable.arrived(2, 1.0)
    assert timetable.start_due(1.0) == {("a", 1): [1], "a": [2]}  # the failing one has a job of its own
    waits = []
    for _ in range(5):
        waits.append(timetable.failed(1, 1.0))
        timetable.start_due(1000.0)
    assert waits == [2.0, 4.0, 8.0, 8.0, 8.0]


def test_a_channel_that_took_too_long_pauses_for_twice_the_time() -> None:
    timetable = schedule(slow_backoff_max_s=60.0)
    timetable.add(1, "a", None, now=0.0)
    waits = []
    for took_s in (10.0, 20.0, 300.0):
        timetable.start_due(1000.0)
        waits.append(timetable.failed(1, 0.0, took_s=took_s))
    assert waits == [20.0, 40.0, 60.0]


def test_a_paused_channel_does_not_start_and_a_resumed_one_does() -> None:
    timetable = schedule()
    timetable.add(1, "a", None, now=0.0)
    timetable.pause(1)
    assert started(timetable, 1.0) == []
    timetable.resume(1, 2.0)
    assert started(timetable, 2.0) == [1]


@given(st.lists(st.tuples(st.sampled_from(["tick", "arrive", "finish", "fail"]), st.integers(0, 3)), max_size=60))
def test_no_channel_runs_twice_at_once_and_none_is_forgotten(steps: list[tuple[str, int]]) -> None:
    timetable, now, running = schedule(), 0.0, set[int]()
    for channel in range(4):
        timetable.add(channel, "g", None if channel % 2 else 5.0, now=0.0)
    for what, channel in steps:
        now += 1.0
        if what == "tick":
            for c in started(timetable, now):
                assert c not in running
                running.add(c)
        elif what == "arrive":
            timetable.arrived(channel, now)
        elif channel in running:
            running.discard(channel)
            timetable.finished(channel, now, has_more=True) if what == "finish" else timetable.failed(channel, now)
    for c in running:
        timetable.finished(c, now, has_more=True)
    for c in range(4):
        timetable.arrived(c, now)
    assert started(timetable, now + 1000.0) == [0, 1, 2, 3]
