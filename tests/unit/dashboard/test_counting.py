from __future__ import annotations

import pytest

from tocsin.dashboard.counting import Growth


def grown(*read: tuple[float, float], window_s: float = 10.0) -> Growth:
    growth = Growth(window_s)
    for at, value in read:
        growth.note(at, {"n": value})
    return growth


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        pytest.param(Growth(10.0), 0.0, id="nothing was read"),
        pytest.param(grown((0, 5)), 0.0, id="read once"),
        pytest.param(grown((0, 5), (2, 9)), 2.0, id="twice"),
        pytest.param(grown((0, 0), (5, 50), (20, 80)), 2.0, id="what is older than the window no longer counts"),
        pytest.param(grown((0, 90), (1, 3), (2, 5)), 2.0, id="a counter that fell began anew"),
    ],
)
def test_growth_a_second(growth: Growth, expected: float) -> None:
    assert growth.per_s("n") == expected


def test_one_counter_for_each_of_another() -> None:
    growth = Growth(60.0)
    growth.note(0, {"sum": 1.0, "count": 1.0})
    growth.note(1, {"sum": 4.0, "count": 7.0})
    assert growth.ratio("sum", "count") == 0.5
    growth.note(2, {"sum": 4.0})
    assert growth.ratio("sum", "count") is None
