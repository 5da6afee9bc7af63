"""Rows by key, and which of them the store does not have yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

R = TypeVar("R", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Change:
    """A row to write, or, without a body, one to delete."""

    kind: str
    key: str
    body: bytes | None


class Rows(Generic[R]):
    """Whoever changes a row in place says so with ``touch``."""

    def __init__(self, kind: str, row: type[R]) -> None:
        self.kind, self._row = kind, row
        self._rows: dict[str, R] = {}
        self._changed: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __getitem__(self, key: str) -> R:
        return self._rows[key]

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: str) -> R | None:
        return self._rows.get(key)

    def names(self) -> list[str]:
        return list(self._rows)

    def put(self, key: str, row: R) -> None:
        self._rows[key] = row
        self._changed.add(key)

    def touch(self, key: str) -> None:
        self._changed.add(key)

    def drop(self, key: str) -> None:
        del self._rows[key]
        self._changed.add(key)

    def read(self, key: str, body: bytes) -> R:
        """A row as the store has it."""
        self._rows[key] = msgspec.json.decode(body, type=self._row)
        return self._rows[key]

    def take(self) -> list[Change]:
        """What changed since the last call."""
        changed, self._changed = self._changed, set()
        return [Change(self.kind, key, self._body(key)) for key in sorted(changed)]

    def _body(self, key: str) -> bytes | None:
        row = self._rows.get(key)
        return None if row is None else msgspec.json.encode(row)
