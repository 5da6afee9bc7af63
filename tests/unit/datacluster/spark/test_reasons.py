from __future__ import annotations

import pytest

from tocsin.datacluster.spark.reasons import reason


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (ValueError("\n\n  [WRONG] it is wrong\nJVM stacktrace:\n"), "[WRONG] it is wrong"),
        (ValueError("\n \n"), "ValueError"),
        (ValueError("x" * 1000), "x" * 500),
    ],
)
def test_the_first_line_that_says_something(problem: Exception, said: str) -> None:
    assert reason(problem) == said
