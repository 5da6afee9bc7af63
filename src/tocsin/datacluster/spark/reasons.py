"""Spark's own words for a failure, in one line."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PythonException

_MOST = 500
_MOST_CAUSES = 20


def reason(problem: BaseException) -> str:
    """The line that says most, or the kind of the problem.

    That is the first of Java's innermost cause, the last of a Python worker's traceback, and else the first.
    """
    said = [line.strip() for line in _text(problem).splitlines() if line.strip()] or [type(problem).__name__]
    return said[-1 if isinstance(problem, PythonException) else 0][:_MOST]


def with_cause(told: str, problem: BaseException) -> str:
    """What was told of a problem that PySpark captured, and what its innermost cause adds to it."""
    while (cause := getattr(problem, "_cause", None)) is not None:
        problem = cause
    words = str(getattr(problem, "_desc", "")).partition("\n")[0][:_MOST]
    return told if words.rpartition(": ")[2] in told else f"{told} ({words})"


def _text(problem: BaseException) -> str:
    if not isinstance(problem, Py4JJavaError):
        return str(problem)
    with suppress(Py4JError, OSError):  # without Java there are no causes to ask
        return str(_innermost(problem.java_exception).toString())
    return str(problem.errmsg)


def _innermost(thrown: Any) -> Any:
    for _ in range(_MOST_CAUSES):
        cause = thrown.getCause()
        if cause is None:
            return thrown
        thrown = cause
    return thrown
