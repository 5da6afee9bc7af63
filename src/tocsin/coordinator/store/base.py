"""What the coordinator asks of a store: all rows at the start, and changes that are durable when it returns.

A row is a kind, a key and a body of JSON; what is in the body is the state's affair. One coordinator uses a
store at a time: opening it takes a lock that ends with the process, or Unavailable says that another has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tocsin.coordinator.rows import Change
from tocsin.errors import ConfigError

Row = tuple[str, str, bytes]
SCHEMA = 1


class Store(Protocol):
    def load(self) -> Sequence[Row]:
        """Every row."""
        ...

    def save(self, changes: Iterable[Change]) -> None:
        """All of these changes or none of them; durable when this returns. Unavailable if it could not be done."""
        ...

    def close(self) -> None: ...


def sorted_out(changes: Iterable[Change]) -> tuple[list[Row], list[tuple[str, str]]]:
    """The rows to write, and the kinds and keys of those to delete."""
    found = list(changes)
    puts = [(change.kind, change.key, change.body) for change in found if change.body is not None]
    return puts, [(change.kind, change.key) for change in found if change.body is None]


def open_store(url: str, data_dir: Path, wait_s: float = 0.0) -> Store:
    """The store at ``url``; the file ``coordinator.db`` in the data directory where it is empty.

    ``wait_s`` is how long a database may take to know that the coordinator before has gone; a file knows it at once.
    """
    if not url:
        from tocsin.coordinator.store.sqlite import SqliteStore

        return SqliteStore(data_dir / "coordinator.db")
    if url.startswith("sqlite:///"):
        from tocsin.coordinator.store.sqlite import SqliteStore

        return SqliteStore(Path(url.removeprefix("sqlite:///")))
    if url.startswith(("postgresql://", "postgres://")):
        from tocsin.coordinator.store.postgres import PostgresStore

        return PostgresStore(url, wait_s)
    raise ConfigError(f"coordinator.store: expected sqlite:///FILE or postgresql://..., got {url.partition(':')[0]!r}")
