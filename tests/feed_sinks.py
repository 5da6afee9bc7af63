"""A sink for tests of feeds: durable enough for one process, idempotent by key, and able to fail."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa


class MemorySink:
    """Keeps each key once; the next ``fail_before`` appends fail before they are kept, ``fail_after`` after."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self.letters: dict[str, list[tuple[str, str]]] = {}
        self.duplicates = 0
        self.fail_before = self.fail_after = 0
        self._lock = threading.Condition()

    def append(self, table: pa.Table, key: str) -> None:
        with self._lock:
            if self.fail_before:
                self.fail_before -= 1
                raise OSError("the disk is full")
            self.duplicates += key in self.tables
            self.tables.setdefault(key, table)
            self._lock.notify_all()
            if self.fail_after:
                self.fail_after -= 1
                raise OSError("the connection was lost after the write")

    def reject(self, raw_lines: list[tuple[str, str]], key: str) -> None:
        with self._lock:
            self.letters.setdefault(key, raw_lines)

    def await_rows(self, count: int, timeout_s: float = 60.0) -> None:
        with self._lock:
            enough = self._lock.wait_for(lambda: sum(t.num_rows for t in self.tables.values()) >= count, timeout_s)
        assert enough, f"fewer than {count} rows after {timeout_s} s"

    def rows(self) -> list[dict[str, Any]]:
        with self._lock:
            return [row for table in self.tables.values() for row in table.to_pylist()]

    def rejected(self) -> list[tuple[str, str]]:
        with self._lock:
            return [letter for letters in self.letters.values() for letter in letters]
