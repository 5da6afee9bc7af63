"""The Arrow form of a dataset's columns."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column, DatasetSpec


def arrow_columns(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow schema of columns, all nullable: NOT NULL is checked when records come in."""
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in columns])


def arrow_schema(spec: DatasetSpec) -> pa.Schema:
    """The Arrow schema of a dataset's records."""
    return arrow_columns(spec.columns)


def key_schema(spec: DatasetSpec) -> pa.Schema:
    """The Arrow schema of a keyed dataset's primary key, in the order of its declaration."""
    found = [spec.column(name) for name in spec.primary_key]
    return arrow_columns(c for c in found if c is not None)
