"""A file's bytes → records that fit the dataset, and dead letters for the rest. Pure.

What fits is decided in one place, the JSON-lines parser. A CSV row (``storage.parse_csv``), and a Parquet
row that cannot be cast as a whole column, is rewritten as a JSON line and goes through it too, so that all
formats share one set of rules and reasons. Its dead letter still shows the text that was in the file.

A name that ends in ``.gz`` is decompressed first.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.parse_csv import csv_pieces
from tocsin.datacluster.storage.parse_records import parse_json_lines
from tocsin.errors import BadRecords
from tocsin.model.catalog import DatasetSpec

PIECE_BYTES = 4 * 2**20
PIECE_ROWS = 20_000
_MOST_UNZIPPED = 2**30

Rejected = list[tuple[str, str]]
Piece = tuple[pa.Table, Rejected]


class UnreadableFile(Exception):
    """The file as a whole is not what it should be; the sentence becomes its dead letter."""


def decode_file(name: str, content: bytes, dataset: DatasetSpec, form: str) -> Iterator[Piece]:
    """The pieces of a file, in its order; UnreadableFile if no record can be told from another."""
    plain = _unzipped(content) if name.endswith(".gz") else content
    yield from _DECODERS[form](plain, dataset)


def decode_lines(lines: list[bytes], dataset: DatasetSpec, raws: list[str] | None = None) -> Piece:
    """Parse JSON texts without line breaks; ``raws`` are what to show of the ones that do not fit."""
    table, bad = parse_json_lines(b"\n".join(lines), dataset)
    if raws is None:
        return table, [(record.raw, record.reason) for record in bad]
    return table, [(raws[record.line_no - 1], record.reason) for record in bad]


def _json(content: bytes, dataset: DatasetSpec) -> Iterator[Piece]:
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + PIECE_BYTES) + 1 or len(content)
        yield decode_lines([content[start:end]], dataset)
        start = end


def _csv(content: bytes, dataset: DatasetSpec) -> Iterator[Piece]:
    try:
        for table, bad in csv_pieces(content, dataset):
            yield table, [(record.raw, record.reason) for record in bad]
    except BadRecords as problem:
        raise UnreadableFile(str(problem)) from None


def _parquet(content: bytes, dataset: DatasetSpec) -> Iterator[Piece]:
    target = arrow_schema(dataset)
    try:
        for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches(PIECE_ROWS):
            yield _cast(batch, target, dataset) or _row_by_row(batch, dataset)
    except (pa.ArrowException, OSError) as failure:
        raise UnreadableFile(f"not a Parquet file that can be read: {failure}") from failure


def _cast(batch: pa.RecordBatch, target: pa.Schema, dataset: DatasetSpec) -> Piece | None:
    """The whole batch in the dataset's types, or nothing if any value of it needs a closer look."""
    given = {name.lower(): batch.column(i) for i, name in enumerate(batch.schema.names)}
    known = {field.name.lower() for field in target}
    if len(given) < batch.num_columns or not known.issuperset(given):
        return None
    needed = {c.name.lower() for c in dataset.columns if c.not_null} | {k.lower() for k in dataset.primary_key}
    columns = []
    for field in target:
        source = given.get(field.name.lower(), pa.nulls(batch.num_rows))
        try:
            column = source.cast(field.type)
        except pa.ArrowException:
            return None
        if column.null_count and field.name.lower() in needed:
            return None
        if (
            pa.types.is_floating(field.type)
            and not pc.all(pc.is_finite(column)).as_py()
            and column.null_count < len(column)
        ):
            return None
        columns.append(column)
    return pa.table(columns, schema=target), []


def _row_by_row(batch: pa.RecordBatch, dataset: DatasetSpec) -> Piece:
    lines = [json.dumps(row, default=_json_form) for row in batch.to_pylist()]
    return decode_lines([line.encode() for line in lines], dataset, lines)


def _json_form(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _unzipped(content: bytes) -> bytes:
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(content)).read(_MOST_UNZIPPED + 1)
    except (OSError, EOFError, zlib.error) as failure:
        raise UnreadableFile(f"not a gzip file that can be read: {failure}") from failure
    if len(plain) > _MOST_UNZIPPED:
        raise UnreadableFile(f"more than {_MOST_UNZIPPED:,} bytes when decompressed")
    return plain


_DECODERS: dict[str, Callable[[bytes, DatasetSpec], Iterator[Piece]]] = {
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
}
