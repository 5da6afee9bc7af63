"""Spark's own words for a failure, in one line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

_MOST = 500


def reason(problem: BaseException) -> str:
    """The first line that says something, or the kind of the problem."""
    text = str(problem.java_exception.toString()) if isinstance(problem, Py4JJavaError) else str(problem)
    said = (line.strip() for line in text.splitlines())
    return next((line for line in said if line), type(problem).__name__)[:_MOST]
