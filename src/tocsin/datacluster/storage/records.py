"""Where a dataset's records lie: the newest in memory, then the log, then Parquet.

``read`` gives the records of a range of sequence numbers with the columns of today, wherever they
are, as they came: for a keyed dataset every version, deletions marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tocsin.clock import Clock
from tocsin.compiler.plan import SEQUENCE
from tocsin.datacluster.storage import columns, manifest
from tocsin.datacluster.storage.arrow_types import arrow_schema, key_schema
from tocsin.datacluster.storage.columns import History
from tocsin.datacluster.storage.frames import Frame, Kind
from tocsin.datacluster.storage.grouping import Show
from tocsin.datacluster.storage.idempotency import RememberedKeys
from tocsin.datacluster.storage.keyed import DELETED
from tocsin.datacluster.storage.manifest import Manifest, StoredFile
from tocsin.datacluster.storage.parquet import ParquetFiles
from tocsin.datacluster.storage.recordlog import RecordLog
from tocsin.datacluster.storage.tail import Tail, cut
from tocsin.errors import Unavailable
from tocsin.model.catalog import DatasetSpec


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration with the columns' history up to it; replaced as one, so that both always agree."""

    spec: DatasetSpec
    history: History

    @property
    def version(self) -> int:
        return self.history.version


class Records:
    """The records of ``spec`` in ``directory``. Reading is safe while nothing is being deleted."""

    def __init__(
        self, directory: Path, spec: DatasetSpec, clock: Clock, keys: RememberedKeys, *,
        segment_bytes: int, tail_bytes: int, cache_bytes: int, reached: int = 0,
    ) -> None:  # fmt: skip
        self._directory = directory
        self.declared = self._evolved(spec, columns.load(directory))
        self.manifest = manifest.load(directory)
        self._files = ParquetFiles(directory, cache_bytes)
        self.log = RecordLog(
            directory / "log", clock, keys, self._prepared, compacted_through=self.manifest.compacted_through,
            reached=reached, segment_bytes=segment_bytes,
        )  # fmt: skip
        self._tail = Tail(self.log.head, tail_bytes)

    @property
    def spec(self) -> DatasetSpec:
        return self.declared.spec

    @property
    def history(self) -> History:
        return self.declared.history

    @property
    def schema(self) -> pa.Schema:
        """The columns of today and ``__seq``."""
        return arrow_schema(self.spec).append(pa.field(SEQUENCE, pa.int64()))

    def read(self, after: int, through: int) -> pa.Table:
        """The records in (after, through], from memory as far as it reaches; ``Unavailable`` past the log's end."""
        start, last, tables = self._tail.read(after, through)
        if through > max(last, after):
            tables += self._past_memory(max(last, after), through)
        if start > after + 1:
            tables = [*self._on_disk(after, min(through, start - 1)), *tables]
        return pa.concat_tables(tables) if tables else self._nothing()

    def logged(self, after: int, through: int) -> Iterator[pa.Table]:
        """The records in (after, through] frame by frame from the log."""
        for frame in self.log.read(after, through):
            yield cut(self._decoded(frame), after, through)

    def stored(self, file: StoredFile) -> pa.Table:
        """A Parquet file with the columns of today."""
        return self._files.read(file, self.history)

    def switch(self, to: Manifest) -> None:
        """Take over a manifest that is durable, and delete the log that it makes superfluous."""
        self.manifest = to
        self.log.drop_through(to.compacted_through)
        self.log.forget_losses(to.floor)

    def change(self, spec: DatasetSpec) -> None:
        """Go over to other columns."""
        with self.log.paused():
            former = self.history.version
            self.declared = self._evolved(spec, self.history)
            self._tail.convert(lambda table: self.history.adapt(table, former))

    def _evolved(self, spec: DatasetSpec, history: History) -> Declared:
        changed = history.changed(spec.columns)
        if changed is not history:
            columns.save(self._directory, changed)
        return Declared(spec, changed)

    def _prepared(self, frame: Frame) -> Show:
        table = self._decoded(frame)
        return lambda: self._tail.add(table, frame.first_seq, frame.last_seq)

    def _past_memory(self, after: int, through: int) -> list[pa.Table]:
        """What memory does not hold yet, from the log."""
        tables = list(self.logged(after, through))
        if sum(table.num_rows for table in tables) != through - after:
            raise Unavailable(f"dataset {self.spec.name!r}: the records in ({after}, {through}] cannot be read")
        return tables

    def _on_disk(self, after: int, through: int) -> Iterator[pa.Table]:
        compacted = self.manifest.compacted_through
        if self.spec.is_keyed:
            if after < compacted:
                raise Unavailable(f"dataset {self.spec.name!r}: changes are kept after {compacted}, not after {after}")
        else:
            for file in self.manifest.files:
                if file.last > after and file.first <= through:
                    yield cut(self.stored(file), after, through)
        yield from self.logged(max(after, compacted), through)

    def _decoded(self, frame: Frame) -> pa.Table:
        """A frame's records with ``__seq``, for a keyed dataset with ``__deleted``."""
        is_deletion = frame.kind is Kind.DELETIONS
        table = self._deletions(frame) if is_deletion else self._records(frame)
        numbers = np.arange(frame.first_seq, frame.first_seq + frame.count, dtype=np.int64)
        table = table.append_column(SEQUENCE, pa.array(numbers))
        if self.spec.is_keyed:
            table = table.append_column(DELETED, pa.array(np.full(frame.count, is_deletion)))
        return table

    def _records(self, frame: Frame) -> pa.Table:
        return self.history.adapt(_batch(frame, self.history.schema(frame.schema_version)), frame.schema_version)

    def _deletions(self, frame: Frame) -> pa.Table:
        """Keys alone, every other column NULL."""
        keys = _batch(frame, key_schema(self.spec))
        names = keys.column_names
        return pa.table(
            {
                field.name: keys.column(field.name) if field.name in names else pa.nulls(frame.count, field.type)
                for field in arrow_schema(self.spec)
            }
        )

    def _nothing(self) -> pa.Table:
        table = self.schema.empty_table()
        return table.append_column(DELETED, pa.array([], pa.bool_())) if self.spec.is_keyed else table


def _batch(frame: Frame, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(frame.body), schema)])
