"""JSON lines to a table of records, with a reason for each line that does not fit.

All lines are decoded at once where all of them fit; otherwise line by line, and a line that does not
fit is looked at value by value. Both ways hold values to ``SqlType.parse``. Column names are
matched exactly, else without regard to case. A column that a line leaves out is NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tocsin.errors import BadArgument, nearest
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import Column, DatasetSpec

MAX_RECORD_BYTES = 1 << 20

_DECODED: dict[str, Any] = {
    "BOOLEAN": bool,
    "INT": int,
    "BIGINT": int | str,
    "DOUBLE": float,
    "STRING": str,
    "TIMESTAMP": str,
    "DATE": str,
    "DECIMAL": Decimal,
}
_FINAL = ("BOOLEAN", "STRING")  # what the decoder gives needs no second look


@dataclass(frozen=True, slots=True)
class BadRecord:
    """``line_no`` counts from 1."""

    line_no: int
    raw: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Reader:
    """How lines of one dataset are decoded. ``required`` are columns that must not be NULL."""

    columns: tuple[Column, ...]
    required: frozenset[str]
    decoder: msgspec.json.Decoder[Any]


def parse_json_lines(
    body: bytes, spec: DatasetSpec, max_record_bytes: int = MAX_RECORD_BYTES
) -> tuple[pa.Table, list[BadRecord]]:
    """The records that fit, in order, and the lines that do not."""
    reader = _reader(spec)
    try:
        if len(body) <= max_record_bytes or max(map(len, body.split(b"\n"))) <= max_record_bytes:
            return _table(reader, reader.decoder.decode_lines(body)), []
    except (msgspec.MsgspecError, BadArgument, UnicodeDecodeError, RecursionError):
        pass
    return _one_by_one(reader, body, max_record_bytes)


def _one_by_one(reader: _Reader, body: bytes, max_record_bytes: int) -> tuple[pa.Table, list[BadRecord]]:
    good: list[Any] = []
    bad: list[BadRecord] = []
    for line_no, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            good.append(_record(reader, line, max_record_bytes))
        except RecursionError:
            bad.append(BadRecord(line_no, line.decode(errors="replace"), "nested too deeply"))
        except (BadArgument, ValueError) as error:
            bad.append(BadRecord(line_no, line.decode(errors="replace"), str(error)))
    return _table(reader, good), bad


def _record(reader: _Reader, line: bytes, max_record_bytes: int) -> Any:
    """One decoded record, or an error that says what is wrong."""
    if len(line) > max_record_bytes:
        raise ValueError(f"too long: {len(line):,} bytes, at most {max_record_bytes:,}")
    try:
        record = reader.decoder.decode(line)
        for column in reader.columns:
            if not _is_final(column):
                column.type.parse(_value(record, column), column.name)
        return record
    except (msgspec.MsgspecError, BadArgument, UnicodeDecodeError):
        return _explained(reader, line)


def _explained(reader: _Reader, line: bytes) -> Any:
    """The record value by value; raises with the first thing that is wrong."""
    try:
        values = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"not a JSON object: {error}") from None
    fields: dict[str, Any] = {}
    for name, raw in values.items():
        column = _column(reader, name)
        fields[column.name] = _parsed(column, raw)
    for name in sorted(reader.required):
        if fields.get(name) is None:
            raise ValueError(f"column {name!r} must not be NULL")
    return fields


def _column(reader: _Reader, name: str) -> Column:
    exact = next((c for c in reader.columns if c.name == name), None)
    found = exact or next((c for c in reader.columns if c.name.lower() == name.lower()), None)
    if found is None:
        raise ValueError(f"unknown column {name!r}{nearest(name, [c.name for c in reader.columns])}")
    return found


def _parsed(column: Column, raw: msgspec.Raw) -> Any:
    is_exact = column.type.name == "DECIMAL" and not column.type.is_array
    try:
        value = msgspec.json.decode(raw, type=Decimal | None) if is_exact else msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadArgument(column.name, f"{column.type} ({error})", bytes(raw).decode(errors="replace")) from None
    return column.type.parse(value, column.name)


def _table(reader: _Reader, records: list[Any]) -> pa.Table:
    return pa.table({c.name: _array(c, [_value(r, c) for r in records]) for c in reader.columns})


def _value(record: Any, column: Column) -> Any:
    if isinstance(record, dict):
        return record.get(column.name)
    return getattr(record, _field(column.name))


def _array(column: Column, values: list[Any]) -> pa.Array:
    if column.type.name == "DOUBLE" and not column.type.is_array:
        array = pa.array(values, pa.float64())
        if np.isfinite(array.drop_null().to_numpy()).all():
            return array
    if not _is_final(column):
        values = [column.type.parse(value, column.name) for value in values]
    return pa.array(values, arrow_type(column.type))


def _is_final(column: Column) -> bool:
    return column.type.name in _FINAL and not column.type.is_array


@lru_cache(maxsize=256)
def _reader(spec: DatasetSpec) -> _Reader:
    keys = {key.lower() for key in spec.primary_key}
    required = frozenset(c.name for c in spec.columns if c.not_null or c.name.lower() in keys)
    fields: list[Any] = []
    for column in sorted(spec.columns, key=lambda c: c.name not in required):
        kind = list[Any] if column.type.is_array else _DECODED[column.type.name]
        if column.name in required:
            fields.append((_field(column.name), kind))
        else:
            fields.append((_field(column.name), kind | None, None))
    names = {_field(c.name): c.name for c in spec.columns}
    record = msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=True, gc=False)
    return _Reader(spec.columns, required, msgspec.json.Decoder(record))


def _field(name: str) -> str:
    """A Python name for any column name."""
    return "c" + name.encode().hex()
