"""The datasets of a running cluster: their stores, and how records get in.

A record that does not fit its dataset is not lost: it goes to the dataset ``DeadLetters`` whole, with
the reason. Dead letters are written before the good records of the same batch, under a key made from
the batch's, so a batch that is sent again after a crash writes neither twice.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.clock import Clock
from tocsin.datacluster.service import Receipt, Rejected
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.parse_records import BadRecord, parse_json_lines
from tocsin.errors import AlreadyExists, BadArgument, InUse, NotFound
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

DEAD_LETTERS = DatasetSpec(
    "DeadLetters",
    (
        Column("dataset", SqlType("STRING"), not_null=True),
        Column("reason", SqlType("STRING"), not_null=True),
        Column("raw", SqlType("STRING"), not_null=True),
        Column("at", SqlType("TIMESTAMP"), not_null=True),
    ),
    retain=Retention(records=100_000),
)
_SHOWN_PROBLEMS = 10


class Datasets(Mapping[str, DatasetStore]):
    """Stores by lower-case name."""

    def __init__(self, root: Path, ledger: Ledger, clock: Clock, options: StoreOptions, max_record_bytes: int) -> None:
        self._root, self._ledger, self._clock, self._options = root, ledger, clock, options
        self._max_record_bytes = max_record_bytes
        self._stores: dict[str, DatasetStore] = {}
        self._lock = threading.RLock()
        self.on_append: Callable[[str], None] = lambda _: None
        self.rejected: dict[str, int] = {}

    def open(self) -> None:
        """Open every dataset of the catalog; make the dead letters where they are missing."""
        for row in self._ledger.read(catalog.list_datasets):
            self._open(row.id, row.spec)
        if DEAD_LETTERS.name.lower() not in self._stores:
            self.create(DEAD_LETTERS)

    def close(self) -> None:
        for store in self._stores.values():
            store.close()

    def __getitem__(self, name: str) -> DatasetStore:
        try:
            return self._stores[name.lower()]
        except KeyError:
            raise NotFound("dataset", name, [s.spec.name for s in self._stores.values()]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._stores))

    def __len__(self) -> int:
        return len(self._stores)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._stores

    def specs(self) -> dict[str, DatasetSpec]:
        return {name: store.spec for name, store in list(self._stores.items())}

    def create(self, spec: DatasetSpec) -> None:
        with self._lock:
            if spec.name in self:
                raise AlreadyExists("dataset", spec.name)
            row = self._ledger.write(lambda tx: catalog.create_dataset(tx, spec, self._clock.now()))
            self._open(row.id, spec)

    def drop(self, name: str, users: Sequence[str]) -> None:
        with self._lock:
            store = self[name]
            if store.spec.name == DEAD_LETTERS.name:
                raise InUse("dataset", store.spec.name, ["the cluster itself"])
            if users:
                raise InUse("dataset", store.spec.name, users)
            self._ledger.write(lambda tx: catalog.drop_dataset(tx, store.spec.name))
            del self._stores[name.lower()]
            store.close()
            shutil.rmtree(self._directory(store.id), ignore_errors=True)

    def add_column(self, name: str, column: Column) -> None:
        with self._lock:
            store = self[name]
            if store.spec.column(column.name):
                raise AlreadyExists("column", f"{store.spec.name}.{column.name}")
            if column.not_null:
                raise BadArgument(column.name, "a column that may be NULL, since old records have no value", "NOT NULL")
            store.add_column(column)
            self._ledger.write(lambda tx: catalog.replace_dataset(tx, store.spec))

    def drop_column(self, name: str, column: str, users: Sequence[str]) -> None:
        with self._lock:
            store = self[name]
            if store.spec.column(column) is None:
                raise NotFound("column", f"{name}.{column}", [c.name for c in store.spec.columns])
            if column.lower() in (k.lower() for k in store.spec.primary_key):
                raise BadArgument(column, "a column outside the primary key", column)
            if users:
                raise InUse("dataset", store.spec.name, users)
            store.drop_column(column)
            self._ledger.write(lambda tx: catalog.replace_dataset(tx, store.spec))

    def ingest(self, name: str, body: bytes, key: str | None) -> Receipt:
        """Append JSON lines; acknowledged when durable."""
        store = self[name]
        table, bad = parse_json_lines(body, store.spec, max_record_bytes=self._max_record_bytes)
        return self.append(name, table, bad, key)

    def append(self, name: str, table: pa.Table, bad: Sequence[BadRecord], key: str | None) -> Receipt:
        """Append records that fit, and send the others to the dead letters."""
        store = self[name]
        if bad:
            self.bury(store.spec.name, bad, f"{store.id}/{key}" if key else None)
        problems = tuple(Rejected(b.line_no, b.reason) for b in bad[:_SHOWN_PROBLEMS])
        if table.num_rows == 0:
            return Receipt(0, len(bad), 0, 0, False, problems)
        done = store.append(table, key)
        if not done.is_duplicate:
            self.on_append(store.spec.name.lower())
        return Receipt(done.count, len(bad), done.first, done.last, done.is_duplicate, problems)

    def insert(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Receipt:
        """Append typed values; a value that does not fit refuses the whole statement."""
        store = self[name]
        parsed = [_typed(store.spec, row) for row in rows]
        return self.append(name, pa.Table.from_pylist(parsed, schema=arrow_schema(store.spec)), (), None)

    def delete(self, name: str, keys: Sequence[Mapping[str, Any]]) -> int:
        store = self[name]
        if not store.spec.is_keyed:
            raise BadArgument(
                store.spec.name, "a dataset with a PRIMARY KEY, whose records can be deleted", "an appending one"
            )
        parsed = [_typed_key(store.spec, key) for key in keys]
        if parsed:
            fields = [f for f in arrow_schema(store.spec) if f.name in store.spec.primary_key]
            store.delete(pa.Table.from_pylist(parsed, schema=pa.schema(fields)))
            self.on_append(store.spec.name.lower())
        return len(parsed)

    def bury(self, dataset: str, bad: Sequence[BadRecord], key: str | None) -> None:
        """Send records that do not fit to the dead letters."""
        at = self._clock.now()
        letters = pa.Table.from_pylist(
            [{"dataset": dataset, "reason": b.reason, "raw": b.raw, "at": int(at * 1e6)} for b in bad],
            schema=pa.schema(
                [("dataset", pa.string()), ("reason", pa.string()), ("raw", pa.string()), ("at", pa.int64())]
            ),
        )
        letters = letters.cast(arrow_schema(DEAD_LETTERS))
        done = self[DEAD_LETTERS.name].append(letters, key)
        if not done.is_duplicate:
            self.rejected[dataset.lower()] = self.rejected.get(dataset.lower(), 0) + len(bad)

    def _open(self, row_id: int, spec: DatasetSpec) -> None:
        self._stores[spec.name.lower()] = DatasetStore(
            self._directory(row_id), spec, self._clock, self._options, id=row_id
        )

    def _directory(self, row_id: int) -> Path:
        return self._root / str(row_id)


def _typed(spec: DatasetSpec, row: Mapping[str, Any]) -> dict[str, Any]:
    known = {c.name.lower(): c for c in spec.columns}
    values = {}
    for name, value in row.items():
        column = known.get(name.lower())
        if column is None:
            raise NotFound("column", f"{spec.name}.{name}", [c.name for c in spec.columns])
        values[column.name] = column.type.parse(list(value) if isinstance(value, tuple) else value, column.name)
    for column in spec.columns:
        if values.get(column.name) is None and (column.not_null or column.name in spec.primary_key):
            raise BadArgument(column.name, f"a value of {column.type}", None)
    return values


def _typed_key(spec: DatasetSpec, key: Mapping[str, Any]) -> dict[str, Any]:
    given = {name.lower(): value for name, value in key.items()}
    if set(given) != {k.lower() for k in spec.primary_key}:
        raise BadArgument("key", f"a value for each of {', '.join(spec.primary_key)}", sorted(key))
    typed = {}
    for name in spec.primary_key:
        column = spec.column(name)
        assert column is not None
        value = column.type.parse(given[name.lower()], name)
        if value is None:
            raise BadArgument(name, f"a value of {column.type}", None)
        typed[column.name] = value
    return typed
