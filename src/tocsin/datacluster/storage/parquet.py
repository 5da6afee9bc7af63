"""Parquet files of a dataset: written durably, read with the columns of today."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.datacluster.storage.columns import History
from tocsin.datacluster.storage.files import write_atomically
from tocsin.datacluster.storage.keyed import sequence
from tocsin.datacluster.storage.manifest import StoredFile
from tocsin.errors import Corrupt

_ROW_GROUP = 128_000


def write_parquet(directory: Path, prefix: str, tables: Iterable[pa.Table], schema: pa.Schema, version: int,
                  through: int) -> StoredFile:  # fmt: skip
    """Write tables with ``__seq`` as one file named after its records."""
    counted = _Counted(tables)
    path = directory / f"{prefix}-{through:020d}.parquet"

    def write(file: BinaryIO) -> None:
        with pq.ParquetWriter(file, schema) as writer:
            for table in grouped(counted, _ROW_GROUP):
                writer.write_table(table.cast(schema))

    size = write_atomically(path, write, "compact.after-file")
    return StoredFile(path.name, counted.first, through, counted.rows, size, version)


class ParquetFiles:
    """Reads the files of one directory, keeping the last ones decoded within ``max_bytes``."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory, self._max_bytes = directory, max_bytes
        self._cache: OrderedDict[str, pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, file: StoredFile, history: History) -> pa.Table:
        with self._lock:
            table = self._cache.get(file.name)
        if table is None:
            path = self._directory / file.name
            try:
                table = pq.read_table(path, use_threads=False)
            except (OSError, pa.ArrowInvalid) as error:
                raise Corrupt(f"{path} cannot be read: {error}") from error
            self._keep(file.name, table)
        return history.adapt(table, file.columns_version)

    def _keep(self, name: str, table: pa.Table) -> None:
        with self._lock:
            self._cache[name] = table
            while self._cache and sum(t.nbytes for t in self._cache.values()) > self._max_bytes:
                self._cache.popitem(last=False)


def grouped(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of at least ``rows`` each, but for the last."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(t.num_rows for t in waiting) >= rows:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


class _Counted:
    """Passes tables on and notes what they hold."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = tables
        self.rows, self.first = 0, 0

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            if table.num_rows:
                lowest = int(sequence(table).min())
                self.first = min(self.first, lowest) if self.rows else lowest
                self.rows += table.num_rows
            yield table
