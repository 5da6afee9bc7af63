"""The feed follows the clock, gives way to lag, and never bursts."""

import pytest

from tocsin.demo.pace import EASY_S, HARD_S, LONGEST_STEP_S, Pace, ease


@pytest.mark.parametrize(
    ("lag_s", "share"),
    [(0.0, 1.0), (EASY_S, 1.0), ((EASY_S + HARD_S) / 2, 0.5), (HARD_S, 0.0), (10 * HARD_S, 0.0)],
    ids=["no lag", "a little lag", "half way", "too much", "far too much"],
)
def test_speed_falls_with_lag(lag_s, share):
    assert ease(lag_s) == pytest.approx(share)


def test_without_lag_the_run_is_the_clock():
    pace = Pace()
    for _ in range(10):
        pace.advance(0.1, 0.0)
    assert (pace.run_s, pace.held_s) == (pytest.approx(1.0), 0.0)


def test_time_lost_to_lag_is_held_and_not_made_up_for():
    pace = Pace()
    pace.advance(0.5, HARD_S)
    assert (pace.run_s, pace.held_s) == (0.0, 0.5)
    assert pace.advance(0.1, 0.0) == pytest.approx(0.1)


def test_a_long_pause_does_not_become_a_burst():
    pace = Pace()
    assert pace.advance(30.0, 0.0) == LONGEST_STEP_S
    assert pace.held_s == 30.0 - LONGEST_STEP_S
