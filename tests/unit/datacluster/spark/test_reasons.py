from __future__ import annotations

import pytest

from tocsin.datacluster.spark.reasons import reason, with_cause


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


class Captured(Exception):
    """As PySpark keeps what Java threw."""

    def __init__(self, desc: str, cause: Exception | None = None) -> None:
        self._desc, self._cause = desc, cause


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (Captured("failed", Captured("it", Captured("a.B: no such host\n\tat x"))), "failed (a.B: no such host)"),
        (Captured("failed", Captured("a.B: failed")), "failed"),
        (Captured("failed"), "failed"),
        (ValueError("failed"), "failed"),
    ],
)
def test_the_innermost_cause_is_told_where_it_adds_something(problem: Exception, said: str) -> None:
    assert with_cause("failed", problem) == said
