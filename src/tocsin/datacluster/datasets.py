"""The datasets of a running cluster: their stores, and how records get in.

A record that does not fit its dataset is not lost: it goes to the dataset ``DeadLetters`` whole, with
the reason. Dead letters are written before the good records of the same batch, under a key made from
the batch's, so a batch that is sent again after a crash writes neither twice.

A dataset whose files do not verify is out of order by itself (``storage.faulted``); the others run.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tocsin.clock import Clock
from tocsin.datacluster.dead_letters import DEAD_LETTERS, Rejections, letters_table
from tocsin.datacluster.service import Receipt, Rejected
from tocsin.datacluster.storage import catalog, dataset_progress
from tocsin.datacluster.storage.arrow_types import arrow_schema, key_schema
from tocsin.datacluster.storage.columns import with_column, without_column
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.dataset_progress import Progress
from tocsin.datacluster.storage.faulted import FaultedStore
from tocsin.datacluster.storage.idempotency import Appended
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.parse_csv import parse_csv
from tocsin.datacluster.storage.parse_records import BadRecord, parse_json_lines
from tocsin.datacluster.typed_values import typed_key, typed_record
from tocsin.errors import AlreadyExists, BadArgument, InUse, KeyReused, LimitExceeded, NotFound
from tocsin.model.catalog import Column, DatasetSpec

log = logging.getLogger(__name__)
_SHOWN_PROBLEMS = 10
Users = Callable[[], Sequence[str]]


class Datasets(Mapping[str, DatasetStore]):
    """Stores by lower-case name. Whoever holds ``lock`` finds the same datasets from begin to end.

    ``on_append`` is called when a dataset has new records, ``on_count`` with how many were accepted and
    rejected (repetitions are neither), ``on_drop`` when one is gone.
    """

    def __init__(
        self, root: Path, ledger: Ledger, clock: Clock, options: StoreOptions, max_record_bytes: int,
        max_batch_lines: int = 100_000,
    ) -> None:  # fmt: skip
        self._root, self._ledger, self._clock, self._options = root, ledger, clock, options
        self._max_record_bytes, self._max_batch_lines = max_record_bytes, max_batch_lines
        self._stores: dict[str, DatasetStore] = {}
        self._noted: dict[int, Progress] = {}
        self._rejections: Rejections | None = None
        self.lock = threading.RLock()
        self.on_append: Callable[[str], None] = lambda _: None
        self.on_count: Callable[[str, int, int], None] = lambda *_: None
        self.on_drop: Callable[[str], None] = lambda _: None

    def open(self) -> None:
        """Open every dataset of the catalog; make the dead letters where they are missing."""
        self._noted = self._ledger.read(dataset_progress.noted)
        for row in self._ledger.read(catalog.list_datasets):
            self._stores[row.spec.name.lower()] = self._opened(row)
        if DEAD_LETTERS.name.lower() not in self._stores:
            self.create(DEAD_LETTERS)
        letters = self[DEAD_LETTERS.name]
        counted = {name: self._progress(store).rejected for name, store in self._stores.items()}
        self._rejections = Rejections(letters, counted, self._progress(letters).head)

    def close(self) -> None:
        try:
            self.note_progress()
        finally:
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

    def problems(self) -> list[str]:
        """What is wrong with which dataset."""
        return [f"dataset {s.spec.name}: {s.problem}" for s in list(self._stores.values()) if s.problem]

    def rejected(self) -> dict[str, int]:
        """How many records of each dataset went to the dead letters, by lower-case name."""
        return self._rejections.counts()[0] if self._rejections else {}

    def note_progress(self) -> None:
        """Write down how far each dataset has come, where that is news."""
        if self._rejections is None:
            return
        counts, counted_through = self._rejections.counts()
        stores = list(self._stores.values())
        now = {s.id: Progress(s.head, counts.get(s.spec.name.lower(), 0)) for s in stores}
        letters = self[DEAD_LETTERS.name]
        now[letters.id] = replace(now[letters.id], head=counted_through)
        news = {id: progress for id, progress in now.items() if self._noted.get(id) != progress}
        if news:
            self._ledger.write(lambda tx: dataset_progress.note(tx, news))
            self._noted.update(news)

    def writable(self, name: str) -> DatasetStore:
        """The store of a dataset that users may write to and change."""
        store = self[name]
        if store.spec.name == DEAD_LETTERS.name:
            raise BadArgument("dataset", "one of yours; the cluster alone writes this one", store.spec.name)
        return store

    def create(self, spec: DatasetSpec) -> None:
        with self.lock:
            if spec.name in self:
                raise AlreadyExists("dataset", spec.name)
            row = self._ledger.write(lambda tx: catalog.create_dataset(tx, spec, self._clock.now()))
            self._stores[spec.name.lower()] = self._store(row, 0)

    def drop(self, name: str, users: Users) -> None:
        """Refused while somebody uses it; ``users`` is asked when nobody can begin to any more."""
        with self.lock:
            store = self[name]
            if store.spec.name == DEAD_LETTERS.name:
                raise InUse("dataset", store.spec.name, ["the cluster itself"])
            _check_unused(store, users)
            self._ledger.write(lambda tx: catalog.drop_dataset(tx, store.spec.name))
            del self._stores[name.lower()]
            if self._rejections is not None:
                self._rejections.forget(name)
            store.close()
            shutil.rmtree(self._directory(store.id), ignore_errors=True)
        self.on_drop(store.spec.name)

    def add_column(self, name: str, column: Column) -> None:
        with self.lock:
            store = self.writable(name)
            self._change(store, with_column(store.spec, column), lambda: store.add_column(column))

    def drop_column(self, name: str, column: str, users: Users) -> None:
        with self.lock:
            store = self.writable(name)
            narrower = without_column(store.spec, column)
            _check_unused(store, users)
            self._change(store, narrower, lambda: store.drop_column(column))

    def ingest(self, name: str, body: bytes, key: str | None, form: str = "json") -> Receipt:
        """Append JSON lines or ``csv``; acknowledged when durable. A key stands for one body."""
        store = self.writable(name)
        self._check_lines(body)
        parse = parse_csv if form == "csv" else parse_json_lines
        table, bad = parse(body, store.spec, max_record_bytes=self._max_record_bytes)
        digest = hashlib.blake2b(body, digest_size=16).hexdigest() if key else ""
        return self.append(name, table, bad, key, digest)

    def _check_lines(self, body: bytes) -> None:
        """Counted before they are read: each takes hundreds of bytes then, a bad one most."""
        lines = body.count(b"\n") + (not body.endswith(b"\n"))
        if lines > self._max_batch_lines:
            raise LimitExceeded("lines in a batch", self._max_batch_lines, lines)

    def append(
        self, name: str, table: pa.Table, bad: Sequence[BadRecord], key: str | None, digest: str = ""
    ) -> Receipt:
        """Append records that fit, and send the others to the dead letters."""
        store = self.writable(name)
        letters_key = f"{store.id}/{key}" if key else None
        if key and letters_key and digest:
            self._check_key(store, key, letters_key, digest)
        is_again = bool(bad) and self.bury(store.spec.name, bad, letters_key, digest).is_duplicate
        problems = tuple(Rejected(b.line_no, b.reason) for b in bad[:_SHOWN_PROBLEMS])
        if table.num_rows == 0:
            return Receipt(0, len(bad), 0, 0, is_again, problems)
        done = store.append(table, key, digest)
        self._appended(store, done)
        return Receipt(done.count, len(bad), done.first, done.last, done.is_duplicate, problems)

    def insert(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Receipt:
        """Append typed values; a value that does not fit refuses the whole statement."""
        store = self.writable(name)
        parsed = [typed_record(store.spec, row) for row in rows]
        return self.append(name, pa.Table.from_pylist(parsed, schema=arrow_schema(store.spec)), (), None)

    def delete(self, name: str, keys: Sequence[Mapping[str, Any]]) -> int:
        store = self.writable(name)
        if not store.spec.is_keyed:
            raise BadArgument(
                store.spec.name, "a dataset with a PRIMARY KEY, whose records can be deleted", "an appending one"
            )
        parsed = [typed_key(store.spec, key) for key in keys]
        if parsed:
            store.delete(pa.Table.from_pylist(parsed, schema=key_schema(store.spec)))
            self.on_append(store.spec.name.lower())
        return len(parsed)

    def bury(self, dataset: str, bad: Sequence[BadRecord], key: str | None, digest: str = "") -> Appended:
        """Send records that do not fit to the dead letters."""
        letters = letters_table(dataset, bad, self._clock.now())
        done = self[DEAD_LETTERS.name].append(letters, key, digest)
        if not done.is_duplicate:
            self.on_count(dataset, 0, len(bad))
            self.on_append(DEAD_LETTERS.name.lower())
        return done

    def _appended(self, store: DatasetStore, done: Appended) -> None:
        if not done.is_duplicate:
            self.on_count(store.spec.name, done.count, 0)
            self.on_append(store.spec.name.lower())

    def _check_key(self, store: DatasetStore, key: str, letters_key: str, digest: str) -> None:
        """``KeyReused`` if the good or the bad records of other content came under this key."""
        try:
            store.check_key(key, digest)
            self[DEAD_LETTERS.name].check_key(letters_key, digest)
        except KeyReused:
            raise KeyReused(key) from None

    def _change(self, store: DatasetStore, changed: DatasetSpec, apply: Callable[[], None]) -> None:
        """The catalog first: after a crash in between, the store follows it when it is opened."""
        former = store.spec
        self._ledger.write(lambda tx: catalog.replace_dataset(tx, changed))
        try:
            apply()
        except Exception:
            self._ledger.write(lambda tx: catalog.replace_dataset(tx, former))
            raise

    def _opened(self, row: catalog.DatasetRow) -> DatasetStore:
        reached = self._ledger.read(lambda tx: dataset_progress.reached(tx, row.id))
        try:
            store = self._store(row, reached)
        except Exception as problem:
            log.exception("dataset %s cannot be opened; the others go on without it", row.spec.name)
            return FaultedStore(row.spec, row.id, reached, str(problem))
        if store.problem:
            log.error("dataset %s: %s", row.spec.name, store.problem)
        return store

    def _store(self, row: catalog.DatasetRow, reached: int) -> DatasetStore:
        return DatasetStore(self._directory(row.id), row.spec, self._clock, self._options, id=row.id, reached=reached)

    def _progress(self, store: DatasetStore) -> Progress:
        return self._noted.get(store.id, Progress())

    def _directory(self, row_id: int) -> Path:
        return self._root / str(row_id)


def _check_unused(store: DatasetStore, users: Users) -> None:
    found = users()
    if found:
        raise InUse("dataset", store.spec.name, found)
