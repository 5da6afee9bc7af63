from __future__ import annotations

import pytest

from tocsin.dashboard.counting import Growth


def grown(*read: tuple[float, float | None], window_s: float = 10.0) -> Growth:
    """Of one counter, read at these times; None where it could not be."""
    growth = Growth(window_s)
    for at, value in read:
        growth.note(at, {} if value is None else {"n": value})
    return growth


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        pytest.param(Growth(10.0), 0.0, id="nothing was read"),
        pytest.param(grown((0, 5)), 0.0, id="read once"),
        pytest.param(grown((0, 5), (2, 9)), 2.0, id="twice"),
        pytest.param(grown((0, 0), (5, 50), (20, 80)), 2.0, id="what is older than the window no longer counts"),
        pytest.param(grown((0, 90), (1, 3), (2, 5)), 2.0, id="a counter that fell began anew"),
        pytest.param(grown((0, 5), (1, None), (2, 9)), 2.0, id="not read between two times that it was"),
        pytest.param(grown((0, 5), (2, 9), (3, None)), 2.0, id="not read just now"),
        pytest.param(grown((0, 5), (2, 9), (13, None)), 0.0, id="not read for longer than the window"),
        pytest.param(grown((0, 0), (1, None), (40, None), (50, 100)), 2.0, id="read again after longer than it"),
    ],
)
def test_growth_a_second(growth: Growth, expected: float) -> None:
    assert growth.per_s("n") == expected


def test_one_counter_for_each_of_another() -> None:
    growth = Growth(60.0)
    growth.note(0, {"sum": 1.0, "count": 1.0})
    growth.note(1, {"sum": 4.0, "count": 7.0})
    assert growth.ratio("sum", "count") == 0.5
    assert growth.ratio("sum", "other") is None


def test_counters_of_what_is_not_there_any_more_are_forgotten() -> None:
    growth = Growth(60.0)
    for at, value in ((0, 1.0), (1, 4.0)):
        growth.note(at, {"lost a": value, "lost b": value})
    growth.keep({"b", "c"})
    assert (growth.grown("lost a"), growth.grown("lost b")) == (0.0, 3.0)
