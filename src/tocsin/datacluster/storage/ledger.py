"""The embedded ledger: one SQLite file, one writer thread, group commit.

Every work that waits when the writer is free runs in the same transaction, each inside its own
savepoint: a work that raises undoes only itself, and its caller gets the error. Callers hear of
success after the commit is on disk (WAL, synchronous=FULL). Readers take a connection from a pool
and see the last committed state. A writer that cannot end its transaction stops: everybody who waits
is told, and the ledger takes no more writes.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from tocsin.datacluster.storage import faults
from tocsin.datacluster.storage.readers import Readers
from tocsin.datacluster.storage.schema import SCRIPTS
from tocsin.datacluster.storage.transaction import Row, Tx
from tocsin.errors import Corrupt, StorageFull, Unavailable

T = TypeVar("T")

_PRAGMAS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA cache_size = -65536;
    PRAGMA temp_store = MEMORY;
"""


class SqliteTx:
    """A ``Tx`` over a SQLite connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        return self._connection.execute(sql, params).rowcount

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, rows)

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def iterate(self, sql: str, params: Sequence[Any] = ()) -> Iterator[Row]:
        yield from self._connection.execute(sql, params)


@dataclass(slots=True)
class _Job:
    work: Callable[[Tx], Any]
    future: Future[Any]
    answer: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)

    def fail(self, error: BaseException) -> None:
        self.future.set_exception(self.error or error)


class Ledger:
    """``Transactions`` over the SQLite file at ``path``.

    A commit takes works that wait until they are ``max_batch``, and those submitted together as one.
    """

    def __init__(self, path: Path, max_batch: int = 1000, busy_timeout_s: float = 10.0) -> None:
        self._path, self._max_batch, self._busy_timeout_s = Path(path), max_batch, busy_timeout_s
        self._lock = threading.Lock()
        self._closed = False
        self._broken: str | None = None
        self._readers = Readers(self._connect)
        self._queue: SimpleQueue[list[_Job] | None] = SimpleQueue()
        with suppress(OSError):  # SQLite says it better
            self._path.touch(0o600)
        self._writer = self._connect()
        _verify(self._writer, self._path)
        _migrate(self._writer, self._path)
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Tx], T], settled: Callable[[Future[T]], None] | None = None) -> Future[T]:
        future: Future[T] = Future()
        if settled is not None:
            future.add_done_callback(settled)  # before the writer knows of it, so that the writer's thread calls it
        self._enqueue([_Job(work, future)])
        return future

    def submit_all(self, works: Sequence[Callable[[Tx], T]]) -> list[Future[T]]:
        futures: list[Future[T]] = [Future() for _ in works]
        self._enqueue([_Job(work, future) for work, future in zip(works, futures, strict=True)])
        return futures

    def write(self, work: Callable[[Tx], T]) -> T:
        return self.submit(work).result()

    def read(self, work: Callable[[Tx], T]) -> T:
        self._check_open()
        try:
            with self._readers.transaction() as connection:
                return work(SqliteTx(connection))
        except sqlite3.Error as error:
            raise _translated(error, self._path) from error

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self._readers.close()
        self._writer.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, jobs: list[_Job]) -> None:
        if threading.current_thread() is self._thread:
            raise RuntimeError("a ledger work must not start another one; pass its Tx on")
        with self._lock:
            self._check_open()
            self._check_writing()
            self._queue.put(jobs)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(f"the ledger {self._path} is closed")

    def _check_writing(self) -> None:
        if self._broken is not None:
            raise Unavailable(f"the ledger {self._path} stopped writing: {self._broken}; open it again")

    def _connect(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self._path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False
            )
            connection.executescript(_PRAGMAS)
        except sqlite3.Error as error:
            raise _translated(error, self._path) from error
        return connection

    def _run(self) -> None:
        while batch := self._next_batch():
            running = [job for job in batch if job.future.set_running_or_notify_cancel()]
            try:
                self._commit(running)
            except BaseException as error:
                self._stop(running, error)
                return

    def _stop(self, running: list[_Job], error: BaseException) -> None:
        """Take no more writes; tell those who run and those who wait."""
        with self._lock:
            self._broken = str(error)
            waiting: list[_Job] = []
            while not self._queue.empty():
                waiting += self._queue.get() or []
        reason = Unavailable(f"the ledger {self._path} stopped writing: {error}; open it again")
        for job in (*running, *waiting):
            if not job.future.done():
                job.fail(reason)

    def _next_batch(self) -> list[_Job]:
        """Wait for a work, then take all that wait with it; empty when closed."""
        batch: list[_Job] = []
        jobs = self._queue.get()
        while jobs is not None:
            batch += jobs
            if len(batch) >= self._max_batch:
                return batch
            try:
                jobs = self._queue.get(block=not batch)
            except Empty:
                return batch
        if batch:
            self._queue.put(None)  # closing: this batch first, then the end again
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for job in batch:
                self._attempt(job)
            faults.point("ledger.before-commit")
            self._writer.execute("COMMIT")
        except BaseException as error:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")  # if this raises, the writer stops
            for job in batch:
                job.fail(_translated(error, self._path))
            return
        faults.point("ledger.after-commit")
        for job in batch:
            job.settle()

    def _attempt(self, job: _Job) -> None:
        """Run one work in its savepoint. Raises only if SQLite gave up the whole transaction."""
        self._writer.execute("SAVEPOINT work")
        try:
            job.answer = job.work(SqliteTx(self._writer))
        except BaseException as error:
            if not self._writer.in_transaction:
                raise
            job.error = _translated(error, self._path)
            self._writer.execute("ROLLBACK TO work")
        self._writer.execute("RELEASE work")


def _verify(connection: sqlite3.Connection, path: Path) -> None:
    """``Corrupt`` names the file and the first thing that SQLite finds wrong in it."""
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        connection.close()
        raise _translated(error, path) from error
    if found != "ok":
        connection.close()
        raise Corrupt(f"the ledger {path} does not verify: {found}; restore it from a copy")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to the newest version that this program knows."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
    found = connection.execute("SELECT max(version) FROM schema_version").fetchone()[0] or 0
    if found > len(SCRIPTS):
        connection.close()
        raise Unavailable(
            f"the ledger {path} has schema version {found}, this program knows versions up to {len(SCRIPTS)}; "
            "start it with the newer Tocsin that wrote it"
        )
    for version in range(found, len(SCRIPTS)):
        for statement in SCRIPTS[version].split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO schema_version VALUES (?)", (version + 1,))
    connection.execute("COMMIT")


def _translated(error: BaseException, path: Path) -> BaseException:
    """Our own error for what SQLite says about the disk or the file; any other as it is."""
    code = getattr(error, "sqlite_errorname", "") or ""
    if code == "SQLITE_FULL":
        return StorageFull(f"the disk is full: the ledger {path} cannot grow; nothing was changed")
    if code.startswith(("SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_READONLY")):
        return Unavailable(f"the ledger {path} cannot be used: {error}")
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Corrupt(f"the ledger {path} does not verify: {error}")
    return error
