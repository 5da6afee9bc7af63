"""A dataset's records: appended durably, seen through windows of sequence numbers.

Numbers start at 1 and are given at commit, so a window (after, through] never misses a record that
came late. An appending dataset shows each record in one window; a keyed one shows the last version
of each key in it. Both are a log of frames, with older records compacted to Parquet behind it: the
records themselves, or for a keyed dataset its state at some number.

A reader may ask as far back as the number last given to ``keep_from``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tocsin.clock import Clock, SystemClock
from tocsin.compiler.plan import BEFORE, SEQUENCE
from tocsin.datacluster.storage import columns, keyed, manifest
from tocsin.datacluster.storage.arrow_types import arrow_schema, key_schema
from tocsin.datacluster.storage.compaction import Compactor
from tocsin.datacluster.storage.files import make_directory
from tocsin.datacluster.storage.frames import MAX_KEY_BYTES, Frame, Kind
from tocsin.datacluster.storage.idempotency import Appended, RememberedKeys
from tocsin.datacluster.storage.keyed import DELETED
from tocsin.datacluster.storage.parquet import ParquetFiles
from tocsin.datacluster.storage.recordlog import RecordLog
from tocsin.datacluster.storage.state import KeyedState, empty_state
from tocsin.datacluster.storage.tail import Tail, cut
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
    """The records of ``spec`` in ``directory``. All methods may be called from any thread."""

    def __init__(
        self,
        directory: Path,
        spec: DatasetSpec,
        clock: Clock | None = None,
        options: StoreOptions | None = None,
        *,
        id: int = 0,
        on_append: Callable[[int], None] | None = None,
    ) -> None:
        self.id, self.spec, self.on_append = id, spec, on_append
        self._options = options or StoreOptions()
        self._clock = clock or SystemClock()
        self._directory = Path(directory)
        make_directory(self._directory)
        self._lock = threading.RLock()
        self._history = columns.load(self._directory)
        self._evolve(spec)
        self._manifest = manifest.load(self._directory)
        self._files = ParquetFiles(self._directory, self._options.cache_bytes)
        self._compactor = Compactor(self._directory, self._clock, self._options.delete_after_s)
        self._compactor.sweep(self._manifest)
        self._keep_from: int | None = None
        self._state: KeyedState | None = None
        keys = RememberedKeys(self._clock, self._options.max_keys, self._options.key_age_s)
        keys.restore(self._compactor.load_keys(self._manifest))
        self._log = RecordLog(
            self._directory / "log",
            self._clock,
            keys,
            self._committed,
            compacted_through=self._manifest.compacted_through,
            segment_bytes=self._options.segment_bytes,
        )
        self._tail = Tail(self._log.head, self._options.tail_bytes)

    @property
    def head(self) -> int:
        """The last number given out."""
        return self._log.head

    @property
    def version(self) -> int:
        """Changes whenever the columns do."""
        return self._history.version

    @property
    def floor(self) -> int:
        """What has a number up to this has expired."""
        return self._manifest.floor

    @property
    def size_bytes(self) -> int:
        """What the records take on disk."""
        with self._lock:
            return sum(f.size_bytes for f in self._manifest.files) + sum(r.size_bytes for r in self._log.refs())

    def close(self) -> None:
        self._log.close()

    # ---- in

    def append(self, table: pa.Table, key: str | None = None) -> Appended:
        """Append records durably; with a ``key`` that was used before, answer as then and append nothing."""
        return self._append(self._checked(table, arrow_schema(self.spec)), Kind.RECORDS, key)

    def delete(self, keys: pa.Table, key: str | None = None) -> Appended:
        """Delete records of a keyed dataset by primary key; each deletion takes a number."""
        if not self.spec.is_keyed:
            raise BadArgument(self.spec.name, "a dataset with a PRIMARY KEY", "an appending one")
        return self._append(self._checked(keys, key_schema(self.spec)), Kind.DELETIONS, key)

    # ---- out

    def new(self, after: int, through: int) -> pa.Table:
        """What the window shows as new."""
        with self._lock:
            self._check(after, through)
            if self.spec.is_keyed:
                return keyed.alive(self._keyed(after).window(after, through))
            return self._logged(max(after, self.floor), through)

    def now(self, through: int | None = None) -> pa.Table:
        """Everything as of ``through``, by default the head."""
        with self._lock:
            through = self.head if through is None else through
            self._check(0, through)
            if self.spec.is_keyed:
                return self._keyed(through).now(through)
            return self._logged(self.floor, through)

    def old(self, after: int, through: int) -> pa.Table:
        """What was there and did not change in the window."""
        table = self.now(through)
        return table.filter(pa.array(keyed.sequence(table) <= after))

    def before(self, after: int, through: int) -> pa.Table:
        """For each row of ``new`` the same key's version before the window, or NULLs."""
        return self._versions_before(self.new(after, through), after)

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
        """The whole dataset for a reader of files; Parquet only for an appending one."""
        with self._lock:
            through = self.head
            if self.spec.is_keyed:
                return Snapshot((), self.now(through), through, self.floor)
            files = [f for f in self._manifest.files if not self._history.is_ambiguous(f.columns_version)]
            others = [f for f in self._manifest.files if f not in files]
            tables = [cut(self._files.read(f, self._history), self.floor, through) for f in others]
            tables.append(self._logged(max(self.floor, self._manifest.compacted_through), through))
            paths = tuple(self._directory / f.name for f in files)
            return Snapshot(paths, pa.concat_tables(tables), through, self.floor)

    # ---- upkeep

    def keep_from(self, seq: int | None) -> None:
        """Nobody will ask for a window that starts before ``seq``; ``None``: nobody asks for windows."""
        self._keep_from = seq

    def roll(self) -> None:
        """Close the active segment, so that the next compaction takes it."""
        self._log.roll()

    def compact(self) -> bool:
        """Move the records of closed segments to Parquet; whether there was anything to move."""
        with self._compactor.lock:
            through = self._log.closed_through()
            if self.spec.is_keyed and self._keep_from is not None:
                through = min(through, self._keep_from)
            if through <= self._manifest.compacted_through:
                self._compactor.delete_due()
                return False
            version, schema = self.version, empty_state(arrow_schema(self.spec)).schema
            made = self._compactor.write(self._manifest, self._parts(through), schema, version, through)
            self._switch(self._compactor.compacted(self._manifest, made, self.spec, self._log, through))
            return True

    def expire(self, now: float | None = None) -> int:
        """Let go what is past retention; the number up to which records have expired."""
        with self._compactor.lock:
            moment = self._clock.now() if now is None else now
            state = self.now() if self.spec.is_keyed else None
            floor = self._compactor.floor(self._manifest, self.spec, self._log, state, moment)
            if self._keep_from is not None:
                floor = min(floor, self._keep_from)
            if floor > self.floor:
                self._switch(self._compactor.expired(self._manifest, self.spec, self._log, floor))
            return self.floor

    def add_column(self, column: Column) -> None:
        """Old records read NULL in it."""
        if column.not_null:
            raise BadArgument(column.name, "a column that may be NULL, since old records have no value", "NOT NULL")
        self._change(replace(self.spec, columns=(*self.spec.columns, column)))

    def drop_column(self, name: str) -> None:
        if name.lower() in (key.lower() for key in self.spec.primary_key):
            raise BadArgument(name, "a column outside the primary key", "a part of it")
        kept = tuple(c for c in self.spec.columns if c.name.lower() != name.lower())
        self._change(replace(self.spec, columns=kept))

    # ---- inside

    @property
    def _key(self) -> tuple[str, ...]:
        return tuple(key_schema(self.spec).names)

    def _append(self, table: pa.Table, kind: Kind, key: str | None) -> Appended:
        if not table.num_rows:
            return Appended(self.head + 1, self.head, 0)
        name = (key or "").encode()
        if len(name) > MAX_KEY_BYTES:
            raise BadArgument("idempotency key", f"at most {MAX_KEY_BYTES} bytes", key)
        body = table.combine_chunks().to_batches()[0].serialize().to_pybytes()
        done = self._log.append(Frame(kind, self.version, 0, table.num_rows, 0, name, body))
        if self.on_append is not None and not done.is_duplicate:
            self.on_append(done.last)
        return done

    def _checked(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """The table in the columns of ``schema``, or ``BadRecords``."""
        try:
            table = table.select(schema.names).cast(schema)
        except (KeyError, ValueError) as error:
            raise BadRecords(
                f"dataset {self.spec.name!r} expects columns {', '.join(schema.names)}: {error}"
            ) from error
        required = {c.name for c in self.spec.columns if c.not_null} | set(self._key)
        for name in required.intersection(schema.names):
            if table.column(name).null_count:
                raise BadRecords(f"dataset {self.spec.name!r}: column {name!r} must not be NULL")
        return table

    def _committed(self, group: list[Frame]) -> None:
        for frame in group:
            self._tail.add(self._decoded(frame), frame.first_seq, frame.last_seq)

    def _decoded(self, frame: Frame) -> pa.Table:
        """A frame's records with ``__seq``, for a keyed dataset with ``__deleted``."""
        is_deletion = frame.kind is Kind.DELETIONS
        schema = key_schema(self.spec) if is_deletion else self._history.schema(frame.schema_version)
        table = pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(frame.body), schema)])
        if is_deletion:
            missing = [f for f in arrow_schema(self.spec) if f.name not in schema.names]
            for field in missing:
                table = table.append_column(field, pa.nulls(frame.count, field.type))
            table = table.select(arrow_schema(self.spec).names)
        else:
            table = self._history.adapt(table, frame.schema_version)
        numbers = np.arange(frame.first_seq, frame.first_seq + frame.count, dtype=np.int64)
        table = table.append_column(SEQUENCE, pa.array(numbers))
        if self.spec.is_keyed:
            table = table.append_column(DELETED, pa.array(np.full(frame.count, is_deletion)))
        return table

    def _logged(self, after: int, through: int) -> pa.Table:
        """The records in (after, through], from memory, else the log, else Parquet."""
        start, tables = self._tail.read(after, through)
        if start > after + 1:
            tables = [*self._on_disk(after, min(through, start - 1)), *tables]
        return pa.concat_tables(tables) if tables else self._decoded_empty()

    def _on_disk(self, after: int, through: int) -> Iterator[pa.Table]:
        compacted = self._manifest.compacted_through
        if self.spec.is_keyed and after < compacted:
            raise Unavailable(
                f"dataset {self.spec.name!r}: the changes after {after} are gone, compacted to {compacted}"
            )
        if not self.spec.is_keyed:
            for file in self._manifest.files:
                if file.last > after and file.first <= through:
                    yield cut(self._files.read(file, self._history), after, through)
            after = max(after, compacted)
        for frame in self._log.read(after, through):
            yield cut(self._decoded(frame), after, through)

    def _decoded_empty(self) -> pa.Table:
        table = empty_state(arrow_schema(self.spec))
        return table.append_column(DELETED, pa.array([], pa.bool_())) if self.spec.is_keyed else table

    def _keyed(self, at: int) -> KeyedState:
        """A state that reaches back to ``at``."""
        if self._state is None or self._state.at > at:
            self._state = self._loaded_state(at)
        self._state.rebase(at if self._keep_from is None else min(at, self._keep_from))
        return self._state

    def _loaded_state(self, at: int) -> KeyedState:
        through = self._manifest.compacted_through
        if through > at:
            raise Unavailable(f"dataset {self.spec.name!r}: its state at {at} is gone, the oldest kept is at {through}")
        tables = [self._files.read(file, self._history) for file in self._manifest.files]
        base = pa.concat_tables(tables) if tables else empty_state(arrow_schema(self.spec))
        return KeyedState(base, through, self._key, self._logged, self.floor)

    def _versions_before(self, table: pa.Table, after: int) -> pa.Table:
        if self.spec.is_keyed:
            with self._lock:
                return self._keyed(after).lookup(table, after)
        return pa.table({f.name: pa.nulls(table.num_rows, f.type) for f in table.schema})

    def _parts(self, through: int) -> Iterator[pa.Table]:
        """What a compaction through ``through`` writes."""
        if self.spec.is_keyed:
            yield self.now(through)
            return
        for frame in self._log.read(self._manifest.compacted_through, through):
            yield cut(self._decoded(frame), self._manifest.compacted_through, through)

    def _switch(self, to: manifest.Manifest) -> None:
        """Go over to another manifest, then delete what it no longer needs."""
        with self._lock:
            former = self._manifest
            if self.spec.is_keyed and to.compacted_through > former.compacted_through:
                self._keyed(former.compacted_through).rebase(to.compacted_through, always=True)
            self._compactor.switched(former, to)
            self._manifest = to
            self._log.drop_through(to.compacted_through)
            if to.floor > former.floor:
                self._state = None

    def _check(self, after: int, through: int) -> None:
        if not 0 <= after <= through <= self.head:
            raise BadArgument("window", f"0 <= after <= through <= {self.head}", (after, through))

    def _evolve(self, spec: DatasetSpec) -> None:
        changed = self._history.changed(spec.columns)
        if changed is not self._history:
            columns.save(self._directory, changed)
            self._history = changed

    def _change(self, spec: DatasetSpec) -> None:
        with self._compactor.lock, self._lock, self._log.paused():
            former = self.version
            self._evolve(spec)
            self.spec = spec
            self._state = None
            self._tail.convert(lambda table: self._history.adapt(table, former))


def _beside(table: pa.Table, before: pa.Table) -> pa.Table:
    for name in before.column_names:
        if not name.startswith("__"):
            table = table.append_column(BEFORE + name, before.column(name))
    return table
