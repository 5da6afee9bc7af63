"""Threads whose failure is not lost: the one who waits for them gets it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Work:
    """Runs ``body`` in a thread; ``body`` looks at ``stopping`` now and then."""

    def __init__(self, name: str, body: Callable[[threading.Event], None]) -> None:
        self.stopping = threading.Event()
        self._body = body
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._problem: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether it has ended; raises what it ended with."""
        if self._problem is not None:
            raise self._problem
        return not self._thread.is_alive()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Ask it to end and wait a while."""
        self.stopping.set()
        if self._thread.is_alive():  # it may never have been started
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._body(self.stopping)
        except BaseException as problem:
            self._problem = problem
