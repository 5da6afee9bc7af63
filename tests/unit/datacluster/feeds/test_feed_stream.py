"""A feed's streaming query when its JVM is gone."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from tocsin.datacluster.feeds.stream import _StreamingQuery


class Dead:
    """A query that cannot be asked any more."""

    def __init__(self, problem: Exception) -> None:
        self._problem, self.is_asked = problem, False

    def stop(self) -> None:
        self.is_asked = True
        raise self._problem


@pytest.mark.parametrize("problem", [Py4JError("no answer"), Py4JNetworkError("gone"), ConnectionRefusedError()])
def test_a_query_whose_jvm_has_died_has_stopped(problem: Exception) -> None:
    query: Any = Dead(problem)
    _StreamingQuery(query).stop()
    assert query.is_asked


def test_what_else_goes_wrong_is_told() -> None:
    query: Any = Dead(TimeoutError("it does not end"))
    with pytest.raises(TimeoutError):
        _StreamingQuery(query).stop()
