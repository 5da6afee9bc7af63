from __future__ import annotations

import pytest
from worlds import broker

from tocsin.dashboard.samples import Figures, figures_of


@pytest.mark.parametrize(
    ("brokers", "expected"),
    [
        pytest.param([], Figures(), id="nobody serves"),
        pytest.param([broker("a", 10), broker("b", 10)], Figures(0.0, 10.0, 10.0, 20.0), id="even"),
        pytest.param([broker("a", 30), broker("b", 10)], Figures(0.5, 30.0, 20.0, 40.0), id="uneven"),
        pytest.param(
            [broker("a", 10), broker("b", 99, "dead")], Figures(0.0, 10.0, 10.0, 10.0), id="dead ones are out"
        ),
        pytest.param(
            [broker("a", 10), broker("b", 0, "draining")], Figures(0.0, 10.0, 10.0, 10.0), id="so are those that leave"
        ),
        pytest.param(
            [broker("a", 30, capacity=3.0), broker("b", 10, capacity=1.0)],
            Figures(0.0, 20.0, 20.0, 40.0),
            id="as much as each can carry is even",
        ),
    ],
)
def test_figures(brokers: list, expected: Figures) -> None:
    assert figures_of(brokers) == expected
