"""Waiting for what happens in other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], what: str, timeout_s: float = 180.0, pause_s: float = 0.02) -> Any:
    """Wait until ``condition`` gives something true."""
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {timeout_s} s: {what}")
        time.sleep(pause_s)
    return answer
