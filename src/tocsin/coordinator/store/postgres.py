"""Rows in PostgreSQL. An advisory lock, held by the connection, keeps a second coordinator out.

It is waited for: the server may not know yet that a coordinator has died whose place the next one takes.

A commit that returns is durable: where the server is set not to wait for that (``synchronous_commit = off``), it waits
for us; every other setting is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psycopg

from tocsin.coordinator.rows import Change
from tocsin.coordinator.store.base import SCHEMA, Row, sorted_out
from tocsin.errors import Unavailable

_LOCK = 0x746F6373  # "tocs"
_CONNECT_S = 10
_CREATE = """
CREATE TABLE IF NOT EXISTS tocsin_coordinator_schema (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS tocsin_coordinator
    (kind TEXT COLLATE "C", key TEXT COLLATE "C", body BYTEA NOT NULL, PRIMARY KEY (kind, key))
"""
_SYNCHRONOUS = """SELECT set_config('synchronous_commit', 'on', false)
                  WHERE current_setting('synchronous_commit') = 'off'"""
_PUT = """INSERT INTO tocsin_coordinator (kind, key, body) VALUES (%s, %s, %s)
          ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body"""


class PostgresStore:
    """Used by one thread at a time. A connection that is lost is an error: the lock went with it."""

    def __init__(self, url: str, wait_s: float) -> None:
        try:
            self._db = psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_S)
        except psycopg.Error as error:
            raise Unavailable(f"PostgreSQL cannot be reached: {_first_line(error)}") from None
        try:
            self._prepare(wait_s)
        except psycopg.errors.LockNotAvailable:
            self._db.close()
            raise Unavailable("another coordinator uses this database") from None
        except psycopg.Error as error:
            self._db.close()
            raise Unavailable(f"PostgreSQL cannot be used: {_first_line(error)}") from None
        except BaseException:
            self._db.close()
            raise

    def load(self) -> Sequence[Row]:
        try:
            rows = self._db.execute("SELECT kind, key, body FROM tocsin_coordinator").fetchall()
        except psycopg.Error as error:
            raise Unavailable(f"PostgreSQL cannot be read: {_first_line(error)}") from None
        return [(kind, key, bytes(body)) for kind, key, body in rows]

    def save(self, changes: Iterable[Change]) -> None:
        puts, drops = sorted_out(changes)
        try:
            with self._db.transaction(), self._db.cursor() as cursor:
                cursor.executemany(_PUT, puts)
                cursor.executemany("DELETE FROM tocsin_coordinator WHERE kind = %s AND key = %s", drops)
        except psycopg.Error as error:
            raise Unavailable(f"PostgreSQL cannot be written: {_first_line(error)}") from None

    def close(self) -> None:
        self._db.close()

    def _prepare(self, wait_s: float) -> None:
        self._db.execute(_SYNCHRONOUS)
        self._db.execute("SELECT set_config('lock_timeout', %s, false)", (f"{max(1, round(wait_s * 1000))}ms",))
        self._db.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        self._db.execute("RESET lock_timeout")
        with self._db.transaction():
            self._db.execute(_CREATE)
            found = self._db.execute("SELECT version FROM tocsin_coordinator_schema").fetchone()
            if found is None:
                self._db.execute("INSERT INTO tocsin_coordinator_schema VALUES (%s)", (SCHEMA,))
            elif found[0] != SCHEMA:
                raise Unavailable(f"the store is of version {found[0]}, and this program knows {SCHEMA}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
