"""What the rest of storage asks of a database: a transaction, and one that runs works durably.

The SQL that passes through here is common to SQLite and PostgreSQL, with ``?`` for a parameter, so
that another ``Transactions`` can stand in for the embedded ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]

CHUNK = 500
LIST = "(*)"  # in the SQL of rows_in and execute_in: where the list of values goes


class Tx(Protocol):
    """An open transaction."""

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Run one statement; the number of rows that it changed."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters."""
        ...

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Every row of a query."""
        ...

    def iterate(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a query one by one; use them up within the transaction."""
        ...


class Transactions(Protocol):
    """Runs works in transactions. Writes are serial: a work sees what every earlier one did."""

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` and return its answer once it is durable; if it raises, it changed nothing."""
        ...

    def submit(self, work: Callable[[Tx], T], settled: Callable[[Future[T]], None] | None = None) -> Future[T]:
        """As ``write``, without waiting. ``settled`` is called in the order of the writes, and must be short.

        A callback that is added to the future afterwards may come after those of later writes.
        """
        ...

    def submit_all(self, works: Sequence[Callable[[Tx], T]]) -> list[Future[T]]:
        """Submit works that reach the disk together; one that raises undoes only itself."""
        ...

    def read(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` on one consistent state; it must not write."""
        ...

    def close(self) -> None:
        """Finish what was submitted, then refuse more."""
        ...


def row_or_none(tx: Tx, sql: str, params: Sequence[Any] = ()) -> Row | None:
    """The first row of a query."""
    found = tx.rows(sql, params)
    return found[0] if found else None


def rows_in(tx: Tx, sql: str, values: Sequence[Any], params: Sequence[Any] = ()) -> list[Row]:
    """The rows of a query with ``IN (*)`` over any number of values, ``params`` coming first."""
    found: list[Row] = []
    for chunk in chunks(values):
        found += tx.rows(sql.replace(LIST, _marks(len(chunk))), (*params, *chunk))
    return found


def execute_in(tx: Tx, sql: str, values: Sequence[Any], params: Sequence[Any] = ()) -> None:
    """A statement with ``IN (*)`` over any number of values, ``params`` coming first."""
    for chunk in chunks(values):
        tx.execute(sql.replace(LIST, _marks(len(chunk))), (*params, *chunk))


def chunks(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """``values`` in runs short enough for one statement."""
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def next_value(tx: Tx, counter: str, count: int = 1) -> int:
    """Take ``count`` numbers that were never taken before; the last of them."""
    sql = """INSERT INTO counter (name, value) VALUES (?, ?)
             ON CONFLICT (name) DO UPDATE SET value = counter.value + excluded.value RETURNING value"""
    return int(tx.rows(sql, (counter, count))[0][0])


def _marks(count: int) -> str:
    return "(" + ",".join("?" * count) + ")"
