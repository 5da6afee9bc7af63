"""Rows in a SQLite file, with a full sync at every commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from tocsin.coordinator.rows import Change
from tocsin.coordinator.store.base import SCHEMA, Row, sorted_out
from tocsin.errors import Corrupt, Unavailable

_CREATE = (
    "CREATE TABLE IF NOT EXISTS row (kind TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)
_PUT = "INSERT INTO row (kind, key, body) VALUES (?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body"


def _question(error: Exception) -> str:
    is_taken = "locked" in str(error)
    return "does another coordinator use it?" if is_taken else "can this program read and write it and its directory?"


class SqliteStore:
    """Used by one thread at a time. The exclusive lock that keeps others out ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._open()
            self._number = path.stat().st_ino
        except (OSError, sqlite3.OperationalError) as error:
            raise Unavailable(f"the store {path} cannot be opened: {error}; {_question(error)}") from None
        except sqlite3.DatabaseError as error:
            raise Corrupt(f"the store {path} is not a SQLite file: {error}") from None

    def load(self) -> Sequence[Row]:
        try:
            return self._db.execute("SELECT kind, key, body FROM row").fetchall()
        except sqlite3.DatabaseError as error:
            raise Corrupt(f"the store {self._path} cannot be read: {error}") from None

    def save(self, changes: Iterable[Change]) -> None:
        puts, drops = sorted_out(changes)
        self._check_file()
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(_PUT, puts)
                self._db.executemany("DELETE FROM row WHERE kind = ? AND key = ?", drops)
        except sqlite3.Error as error:
            raise Unavailable(f"the store {self._path} cannot be written: {error}") from None

    def close(self) -> None:
        self._db.close()

    def _check_file(self) -> None:
        """A file that was deleted or replaced still takes rows, but nobody would find them again."""
        try:
            is_same = self._path.stat().st_ino == self._number
        except OSError:
            is_same = False
        if not is_same:
            raise Unavailable(f"the store {self._path} cannot be written: its file was deleted or replaced")

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None, timeout=0)
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN EXCLUSIVE")
            self._check_schema(db)
            db.execute(_CREATE)
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db

    def _check_schema(self, db: sqlite3.Connection) -> None:
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, SCHEMA):
            raise Unavailable(f"the store {self._path} is of version {found}, and this program knows {SCHEMA}")
        db.execute(f"PRAGMA user_version = {SCHEMA}")
