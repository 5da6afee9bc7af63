"""The columns that a dataset had over time.

Every column has an id, never used again, and every version of the dataset lists the ids that it
holds. What was written under one version is read under another by id: a column that was added since
reads NULL, one that was dropped disappears, and one dropped and added again under the same name does
not bring its old values back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pyarrow as pa

from tocsin.datacluster.storage.arrow_types import arrow_columns
from tocsin.datacluster.storage.files import write_atomically
from tocsin.errors import AlreadyExists, BadArgument, Corrupt, NotFound
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column, DatasetSpec

FILE = "columns.json"


@dataclass(frozen=True, slots=True)
class StoredColumn:
    id: int
    column: Column


@dataclass(frozen=True, slots=True)
class History:
    """``versions[v - 1]`` holds the columns of version ``v``."""

    versions: tuple[tuple[StoredColumn, ...], ...]

    @property
    def version(self) -> int:
        return len(self.versions)

    def columns(self, version: int) -> tuple[StoredColumn, ...]:
        return self.versions[version - 1]

    def schema(self, version: int) -> pa.Schema:
        return arrow_columns(stored.column for stored in self.columns(version))

    def changed(self, columns: tuple[Column, ...]) -> History:
        """With one more version if ``columns`` differ from the last one."""
        current = {stored.column.name.lower(): stored for stored in (self.versions[-1] if self.versions else ())}
        if [s.column for s in current.values()] == list(columns):
            return self
        next_id = max((s.id for version in self.versions for s in version), default=0) + 1
        latest: list[StoredColumn] = []
        for column in columns:
            known = current.get(column.name.lower())
            if known is not None and known.column.type != column.type:
                raise Corrupt(f"column {column.name!r} is stored as {known.column.type}, declared as {column.type}")
            latest.append(StoredColumn(known.id if known else next_id, column))
            next_id += known is None
        return History((*self.versions, tuple(latest)))

    def is_ambiguous(self, version: int) -> bool:
        """Whether a column of ``version`` has the name of another one of today."""
        today = {stored.column.name.lower(): stored.id for stored in self.versions[-1]}
        return any(today.get(s.column.name.lower(), s.id) != s.id for s in self.columns(version))

    def adapt(self, table: pa.Table, version: int) -> pa.Table:
        """A table written under ``version`` with the columns of today; others, like ``__seq``, stay."""
        if version == self.version:
            return table
        old = {stored.id: stored.column.name for stored in self.columns(version)}
        extra = [name for name in table.column_names if name.startswith("__")]
        arrays = {
            s.column.name: table.column(old[s.id])
            if s.id in old
            else pa.nulls(table.num_rows, arrow_type(s.column.type))
            for s in self.versions[-1]
        }
        return pa.table(arrays | {name: table.column(name) for name in extra})


def load(directory: Path) -> History:
    path = directory / FILE
    if not path.exists():
        return History(())
    try:
        return msgspec.json.decode(path.read_bytes(), type=History)
    except msgspec.DecodeError as error:
        raise Corrupt(f"{path} does not verify: {error}") from error


def save(directory: Path, history: History) -> None:
    data = msgspec.json.encode(history)
    write_atomically(directory / FILE, lambda file: file.write(data), "schema.before-switch")


def with_column(spec: DatasetSpec, column: Column) -> DatasetSpec:
    """The dataset with one more column, or why that cannot be."""
    if spec.column(column.name):
        raise AlreadyExists("column", f"{spec.name}.{column.name}")
    if column.not_null:
        raise BadArgument(column.name, "a column that may be NULL, since old records have no value", "NOT NULL")
    return replace(spec, columns=(*spec.columns, column))


def without_column(spec: DatasetSpec, name: str) -> DatasetSpec:
    """The dataset with one column less, or why that cannot be."""
    if spec.column(name) is None:
        raise NotFound("column", f"{spec.name}.{name}", [c.name for c in spec.columns])
    if name.lower() in (key.lower() for key in spec.primary_key):
        raise BadArgument(name, "a column outside the primary key", "a part of it")
    return replace(spec, columns=tuple(c for c in spec.columns if c.name.lower() != name.lower()))
