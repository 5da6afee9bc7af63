"""A dataset's records: appended durably, seen through windows of sequence numbers.

Numbers start at 1 and are given at commit, so a window (after, through] never misses a record that
came late. An appending dataset shows each record in one window; a keyed one shows the last version
of each key in it. Both are a log of frames, with older records compacted to Parquet behind it: the
records themselves, or for a keyed dataset its state at some number.

A reader may ask as far back as the number last given to ``keep_from``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tocsin.clock import Clock, SystemClock
from tocsin.compiler.plan import BEFORE
from tocsin.datacluster.storage import keyed, manifest
from tocsin.datacluster.storage.arrow_types import arrow_schema, key_schema
from tocsin.datacluster.storage.columns import with_column, without_column
from tocsin.datacluster.storage.compaction import Compactor
from tocsin.datacluster.storage.files import make_directory
from tocsin.datacluster.storage.frames import MAX_KEY_BYTES, Frame, Kind
from tocsin.datacluster.storage.idempotency import Appended, RememberedKeys, joined_key
from tocsin.datacluster.storage.manifest import Manifest
from tocsin.datacluster.storage.records import Records
from tocsin.datacluster.storage.state import KeyedState
from tocsin.datacluster.storage.tail import cut
from tocsin.errors import BadArgument, BadRecords, Unavailable
from tocsin.model.catalog import Column, DatasetSpec


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """``delete_after_s``: how long a replaced file stays for readers that were given its name."""

    segment_bytes: int = 64 << 20
    tail_bytes: int = 64 << 20
    cache_bytes: int = 256 << 20
    max_keys: int = 100_000
    key_age_s: float = 86_400.0
    delete_after_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything through ``through``: Parquet files plus ``tail``; rows with ``__seq`` <= ``floor`` expired."""

    parquet_paths: tuple[Path, ...]
    tail: pa.Table
    through: int
    floor: int


class DatasetStore:
    """The records of ``spec`` in ``directory``. All methods may be called from any thread.

    ``reached`` is a number that others have seen: none up to it is given out, whatever the log holds.
    """

    def __init__(
        self,
        directory: Path,
        spec: DatasetSpec,
        clock: Clock | None = None,
        options: StoreOptions | None = None,
        *,
        id: int = 0,
        reached: int = 0,
    ) -> None:
        self.id = id
        self._directory, self._clock = Path(directory), clock or SystemClock()
        make_directory(self._directory)
        o = options or StoreOptions()
        stored = manifest.load(self._directory)
        self._compactor = Compactor(self._directory, self._clock, o.delete_after_s)
        self._compactor.sweep(stored)
        keys = RememberedKeys(self._clock, o.max_keys, o.key_age_s)
        keys.restore(self._compactor.load_keys(stored))
        self._records = Records(
            self._directory, spec, self._clock, keys,
            segment_bytes=o.segment_bytes, tail_bytes=o.tail_bytes, cache_bytes=o.cache_bytes, reached=reached,
        )  # fmt: skip
        self._lock = threading.RLock()
        self._is_closed = False
        self._keep_from: int | None = None
        self._last_after = 0
        self._state: KeyedState | None = None

    @property
    def spec(self) -> DatasetSpec:
        return self._records.spec

    @property
    def head(self) -> int:
        """The last number given out."""
        return self._records.log.head

    def time_of(self, seq: int) -> float | None:
        """When the record of that number became durable, as long as the log has it."""
        return self._records.log.time_of(seq)

    @property
    def version(self) -> int:
        """Changes whenever the columns do."""
        return self._records.history.version

    @property
    def floor(self) -> int:
        """What has a number up to this has expired."""
        return self._manifest.floor

    @property
    def size_bytes(self) -> int:
        """What the records take on disk."""
        files = sum(f.size_bytes for f in self._manifest.files)
        return files + sum(r.size_bytes for r in self._records.log.refs())

    @property
    def problem(self) -> str | None:
        """What is wrong with the dataset, for its owner; it works nevertheless."""
        return "; ".join(str(loss) for loss in self._records.log.losses) or None

    @property
    def is_faulted(self) -> bool:
        """Whether it takes and gives nothing (see ``faulted``)."""
        return False

    @property
    def count(self) -> int:
        """How many records there are now."""
        if self.spec.is_keyed:
            return int(self.now().num_rows)
        lost = sum(loss.last - max(loss.first - 1, self.floor) for loss in self._records.log.losses)
        return self.head - self.floor - lost

    def close(self) -> None:
        """Take no more records; a compaction that runs is waited for."""
        with self._compactor.lock:
            self._is_closed = True
            self._records.log.close()

    def append(self, table: pa.Table, key: str | None = None, digest: str = "") -> Appended:
        """Append records durably; with a ``key`` that was used before, answer as then and append nothing.

        ``digest`` stands for what was sent under the key: another one with the same key is ``KeyReused``.
        """
        declared = self._records.declared
        checked = _checked(table, arrow_schema(declared.spec), declared.spec)
        return self._append(checked, Kind.RECORDS, declared.version, joined_key(key, digest))

    def check_key(self, key: str, digest: str) -> None:
        """``KeyReused`` if an append with both would be."""
        self._records.log.check_key(key, digest)

    def delete(self, keys: pa.Table, key: str | None = None) -> Appended:
        """Delete records of a keyed dataset by primary key; each deletion takes a number."""
        declared = self._records.declared
        if not declared.spec.is_keyed:
            raise BadArgument(declared.spec.name, "a dataset with a PRIMARY KEY", "an appending one")
        checked = _checked(keys, key_schema(declared.spec), declared.spec)
        return self._append(checked, Kind.DELETIONS, declared.version, joined_key(key, ""))

    def new(self, after: int, through: int) -> pa.Table:
        """What the window shows as new."""
        with self._lock:
            self._check(after, through)
            if self.spec.is_keyed:
                return keyed.alive(self._keyed(after).window(after, through))
            return self._records.read(max(after, self.floor), through)

    def now(self, through: int | None = None) -> pa.Table:
        """Everything as of ``through``, by default the head."""
        with self._lock:
            through = self.head if through is None else through
            self._check(0, through)
            if self.spec.is_keyed:
                return self._keyed(through).now(through)
            return self._records.read(self.floor, through)

    def old(self, after: int, through: int) -> pa.Table:
        """What was there and did not change in the window."""
        table = self.now(through)
        return table.filter(pa.array(keyed.sequence(table) <= after))

    def new_before(self, after: int, through: int) -> pa.Table:
        """``new`` with ``__before_`` columns."""
        table = self.new(after, through)
        return _beside(table, self._versions_before(table, after))

    def now_before(self, after: int, through: int) -> pa.Table:
        """``now`` with ``__before_`` columns; what did not change is its own before-image."""
        table = self.now(through)
        changed = keyed.sequence(table) > after
        before = self._versions_before(table.filter(pa.array(changed)), after)
        rows = np.where(changed, np.cumsum(changed) - 1 + table.num_rows, np.arange(table.num_rows))
        return _beside(table, pa.concat_tables([table, before]).take(pa.array(rows)))

    def snapshot(self) -> Snapshot:
        """The whole dataset for a reader of files; a keyed one is all in ``tail``."""
        with self._lock:
            through, floor, history = self.head, self.floor, self._records.history
            if self.spec.is_keyed:
                return Snapshot((), self.now(through), through, floor)
            unclear = [f for f in self._manifest.files if history.is_ambiguous(f.columns_version)]
            paths = tuple(self._directory / f.name for f in self._manifest.files if f not in unclear)
            tables = [cut(self._records.stored(f), floor, through) for f in unclear]
            tables.append(self._records.read(max(floor, self._manifest.compacted_through), through))
            return Snapshot(paths, pa.concat_tables(tables), through, floor)

    def keep_from(self, seq: int | None) -> None:
        """Nobody will ask for a window that starts before ``seq``; ``None``: nobody asks for windows."""
        self._keep_from = seq

    def compact(self) -> bool:
        """Move the records of closed segments to Parquet; whether there was anything to move."""
        with self._compactor.lock:
            if self._is_closed:
                return False
            through = self._records.log.closed_through()
            if self.spec.is_keyed and self._keep_from is not None:
                through = min(through, self._keep_from)
            if through <= self._manifest.compacted_through:
                self._compactor.delete_due()
                return False
            schema = self._records.schema
            made = self._compactor.write(self._manifest, self._parts(through), schema, self.version, through)
            self._switch(self._compactor.compacted(self._manifest, made, self.spec, self._records.log, through))
            return True

    def expire(self, now: float | None = None) -> int:
        """Let go what is past retention; the number up to which records have expired."""
        with self._compactor.lock:
            if self._is_closed:
                return self.floor
            moment = self._clock.now() if now is None else now
            state = self.now() if self.spec.is_keyed else None
            floor = self._compactor.floor(self._manifest, self.spec, self._records.log, state, moment)
            if self._keep_from is not None:
                floor = min(floor, self._keep_from)
            if floor > self.floor:
                self._switch(self._compactor.expired(self._manifest, self.spec, self._records.log, floor))
            return self.floor

    def add_column(self, column: Column) -> None:
        """Old records read NULL in it."""
        self._change(with_column(self.spec, column))

    def drop_column(self, name: str) -> None:
        self._change(without_column(self.spec, name))

    @property
    def _manifest(self) -> Manifest:
        return self._records.manifest

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(key_schema(self.spec).names)

    def _append(self, table: pa.Table, kind: Kind, version: int, key: bytes) -> Appended:
        """``version`` is that of the columns of ``table``, which may have changed since it was checked."""
        if not table.num_rows:
            return Appended(self.head + 1, self.head, 0)
        if len(key) > MAX_KEY_BYTES:
            raise BadArgument("idempotency key", f"at most {MAX_KEY_BYTES} bytes", key.decode())
        body = table.combine_chunks().to_batches()[0].serialize().to_pybytes()
        return self._records.log.append(Frame(kind, version, 0, table.num_rows, 0, key, body))

    def _check(self, after: int, through: int) -> None:
        if not 0 <= after <= through <= self.head:
            raise BadArgument("window", f"0 <= after <= through <= {self.head}", (after, through))

    def _keyed(self, at: int) -> KeyedState:
        """A state that reaches back to ``at``."""
        if self._state is None or self._state.at > at:
            self._state = self._loaded_state(at)
        self._state.rebase(min(at, self._oldest_window()))
        return self._state

    def _oldest_window(self) -> int:
        return self._last_after if self._keep_from is None else self._keep_from

    def _loaded_state(self, at: int) -> KeyedState:
        through = self._manifest.compacted_through
        if through > at:
            raise Unavailable(f"dataset {self.spec.name!r}: its state at {at} is gone, the oldest kept is at {through}")
        tables = [self._records.stored(file) for file in self._manifest.files]
        base = pa.concat_tables(tables) if tables else self._records.schema.empty_table()
        return KeyedState(base, through, self._key, self._records.read, self.floor)

    def _versions_before(self, table: pa.Table, after: int) -> pa.Table:
        if not self.spec.is_keyed:
            return pa.table({f.name: pa.nulls(table.num_rows, f.type) for f in table.schema})
        with self._lock:
            self._last_after = max(self._last_after, after)
            return self._keyed(after).lookup(table, after)

    def _parts(self, through: int) -> Iterator[pa.Table]:
        """What a compaction writes; its own state, so that the one in use stays warm."""
        if self.spec.is_keyed:
            yield self._loaded_state(through).now(through)
        else:
            yield from self._records.logged(self._manifest.compacted_through, through)

    def _switch(self, to: Manifest) -> None:
        """Go over to another manifest, then delete what it no longer needs."""
        with self._lock:
            if self._state is not None and self._state.at < to.compacted_through:
                self._state.rebase(to.compacted_through, always=True)
            if to.floor > self.floor:
                self._state = None
            self._compactor.switched(self._manifest, to)
            self._records.switch(to)

    def _change(self, spec: DatasetSpec) -> None:
        with self._compactor.lock, self._lock:
            self._records.change(spec)
            self._state = None


def _beside(table: pa.Table, before: pa.Table) -> pa.Table:
    for name in before.column_names:
        if not name.startswith("__"):
            table = table.append_column(BEFORE + name, before.column(name))
    return table


def _checked(table: pa.Table, schema: pa.Schema, spec: DatasetSpec) -> pa.Table:
    """The table in the columns of ``schema``, or ``BadRecords``."""
    try:
        table = table.select(schema.names).cast(schema)
    except (KeyError, ValueError) as error:
        expected = ", ".join(schema.names)
        raise BadRecords(f"dataset {spec.name!r} expects the columns {expected}: {error}") from error
    required = {c.name for c in spec.columns if c.not_null} | set(key_schema(spec).names)
    for name in required.intersection(schema.names):
        if table.column(name).null_count:
            raise BadRecords(f"dataset {spec.name!r}: column {name!r} must not be NULL")
    return table
