"""Who is attached to a channel's backend subscriptions, as arrays: broker × backend number.

A broker gets a result of a backend subscription when one of its subscriptions began at or before the
result's execution. The arrays answer that for millions of pairs at once.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
_NEVER = np.iinfo(np.int64).max


class Attachments:
    """First execution that counts, by broker and backend number; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[int, npt.NDArray[np.int64]] = {}

    def attach(self, broker: int, backends: Ids, since: npt.NDArray[np.int64]) -> None:
        """The broker holds ``backends``, which may repeat, from the executions ``since`` on."""
        if len(backends) == 0:
            return
        with self._lock:
            self._grow(broker, int(backends.max()))
            np.minimum.at(self._since[broker], backends, since)

    def detach(self, broker: int, backends: Ids) -> None:
        """The broker no longer holds ``backends``."""
        with self._lock:
            if broker in self._since:
                self._since[broker][backends] = _NEVER

    def wanted(self, broker: int, execution: int, backends: Ids) -> npt.NDArray[np.bool_]:
        """Which of ``backends`` the broker gets from ``execution``."""
        with self._lock:
            since = self._since.get(broker)
            if since is None:
                return np.zeros(len(backends), bool)
            known = backends < len(since)
            if known.all():
                return np.asarray(since[backends] <= execution)
            answer = np.zeros(len(backends), bool)
            answer[known] = since[backends[known]] <= execution
            return answer

    def brokers(self) -> list[int]:
        """Brokers that hold something."""
        with self._lock:
            return [broker for broker, since in self._since.items() if (since != _NEVER).any()]

    def _grow(self, broker: int, backend: int) -> None:
        held = self._since.get(broker)
        if held is not None and backend < len(held):
            return
        since = np.full(max(1024, 2 * (backend + 1)), _NEVER, np.int64)
        if held is not None:
            since[: len(held)] = held
        self._since[broker] = since
