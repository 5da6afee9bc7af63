"""The ledger's reading connections: as many as read at once, of which a few stay open for the next."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PRAGMAS = """
    PRAGMA query_only = ON;
    PRAGMA cache_size = -4096;
"""


class Readers:
    """Connections made by ``connect``; at most ``max_idle`` stay open, the one used last goes out first."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], max_idle: int = 16) -> None:
        self._connect, self._max_idle = connect, max_idle
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        return len(self._idle)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection of one's own, on one state."""
        connection = self._take()
        try:
            connection.execute("BEGIN")
            yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        with self._lock:
            self._max_idle = 0
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection = self._connect()
        connection.executescript(_PRAGMAS)
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next reader, unless there are enough or it cannot end its transaction."""
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except sqlite3.Error:
            connection.close()
            return
        with self._lock:
            if len(self._idle) < self._max_idle:
                self._idle.append(connection)
                return
        connection.close()
