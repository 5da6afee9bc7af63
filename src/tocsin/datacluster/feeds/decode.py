"""A file's bytes → records that fit the dataset, and dead letters for the rest. Pure.

What fits is decided in one place, the JSON-lines parser. A CSV row, and a Parquet row that cannot be
cast as a whole column, is rewritten as a JSON line and goes through it too, so that all formats
share one set of rules and reasons. Its dead letter still shows the text that was in the file.

CSV needs a header, which names the columns in any order; an empty field is NULL. A name that ends
in ``.gz`` is decompressed first.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.parse_records import parse_json_lines
from tocsin.model.catalog import DatasetSpec
from tocsin.model.types import SqlType

PIECE_BYTES = 4 * 2**20
PIECE_ROWS = 20_000
_MOST_UNZIPPED = 2**30
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")

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
    rows = _csv_rows(content)
    header = next(rows, None)
    if header is None:
        return
    names, _, problem = header
    problem = problem or _header_problem(names)
    types = [column.type if (column := dataset.column(name)) else None for name in names]
    lines: list[bytes] = []
    raws: list[str] = []
    rejected: Rejected = []
    for fields, raw, row_problem in rows:
        found = problem or row_problem or _width_problem(fields, names)
        if found:
            rejected.append((raw, found))
        else:
            values = (_from_text(text, sql) for text, sql in zip(fields, types, strict=True))
            lines.append(json.dumps(dict(zip(names, values, strict=True))).encode())
            raws.append(raw)
        if len(raws) + len(rejected) >= PIECE_ROWS:
            yield _with(decode_lines(lines, dataset, raws), rejected)
            lines, raws, rejected = [], [], []
    yield _with(decode_lines(lines, dataset, raws), rejected)


def _csv_rows(content: bytes) -> Iterator[tuple[list[str], str, str | None]]:
    """Fields, raw text and problem of each row, the header among them; blank rows are skipped."""
    text = content.decode("utf-8-sig", errors="replace")
    damaged = "\ufffd" in text and not _is_utf8(content)
    tape: list[str] = []
    reader = csv.reader(_recorded(io.StringIO(text, newline=""), tape), strict=True)
    while True:
        tape.clear()
        problem = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as failure:
            fields, problem = [], f"not CSV: {failure}"
        raw = "".join(tape).rstrip("\r\n")
        if damaged and "\ufffd" in raw:
            problem = "not valid UTF-8"
        if fields or problem:
            yield fields, raw, problem


def _recorded(lines: io.StringIO, tape: list[str]) -> Iterator[str]:
    for line in lines:
        tape.append(line)
        yield line


def _header_problem(names: list[str]) -> str | None:
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"the header names {twice[0]!r} twice" if twice else None


def _width_problem(fields: list[str], names: list[str]) -> str | None:
    if len(fields) == len(names):
        return None
    return f"expected {len(names)} fields, as in the header, got {len(fields)}"


def _from_text(text: str, sql: SqlType | None) -> Any:
    """The JSON value that a CSV field stands for; what does not convert stays text, and is refused later."""
    if text == "":
        return None
    if sql is None:
        return text
    try:
        return _CONVERTERS["ARRAY" if sql.is_array else sql.name](text)
    except (KeyError, ValueError):
        return text


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda text: {"true": True, "false": False}[text.strip().lower()],
    "INT": str.strip,
    "BIGINT": str.strip,
    "DOUBLE": _number,
    "DECIMAL": str.strip,
    "ARRAY": json.loads,
}


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


def _with(piece: Piece, rejected: Rejected) -> Piece:
    return piece[0], rejected + piece[1]


def _unzipped(content: bytes) -> bytes:
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(content)).read(_MOST_UNZIPPED + 1)
    except (OSError, EOFError, zlib.error) as failure:
        raise UnreadableFile(f"not a gzip file that can be read: {failure}") from failure
    if len(plain) > _MOST_UNZIPPED:
        raise UnreadableFile(f"more than {_MOST_UNZIPPED:,} bytes when decompressed")
    return plain


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


_DECODERS: dict[str, Callable[[bytes, DatasetSpec], Iterator[Piece]]] = {
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
}
