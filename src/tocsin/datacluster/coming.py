"""Subscriptions that are being written to the ledger, and are not in memory yet.

An execution's place in the ledger's order is that of its beginning, and what was added before it must be in its
snapshot. Whoever finds nothing coming after the beginning was submitted may take the snapshot at once: all that was
added before is in memory, and what comes now is after it in the ledger. Otherwise the beginning has to be waited for.
"""

from __future__ import annotations

import threading


class Coming:
    """Enter it before the write is submitted, and leave it when memory has it. Safe for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1

    def __bool__(self) -> bool:
        with self._lock:
            return self._count > 0
