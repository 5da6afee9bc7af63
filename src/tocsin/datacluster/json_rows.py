"""Rows of an Arrow table as JSON values, by the one rule of ``tocsin.model.types``: by type, never by value.

BIGINT and DECIMAL are strings, TIMESTAMP is ISO 8601 in UTC with a Z, DATE is ISO 8601, BINARY is
hexadecimal. Spark holds values that Python's own types do not: a text that is no UTF-8 has U+FFFD where it
does not decode, and years beyond 9999 are written with all their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

Convert = Callable[[Any], Any]


def json_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Every row, as values that a JSON encoder takes."""
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def rows_within(table: pa.Table, max_bytes: int) -> int:
    """How many of the first rows take at most ``max_bytes``."""
    low, high = 0, table.num_rows
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if table.slice(0, middle).nbytes <= max_bytes else (low, middle - 1)
    return low


def _values(column: pa.ChunkedArray) -> list[Any]:
    convert = _converter(column.type)
    raw = column.cast(_readable(column.type)) if _readable(column.type) != column.type else column
    return [None if value is None else convert(value) for value in raw.to_pylist()]


def _readable(kind: pa.DataType) -> pa.DataType:
    """The type under which Python reads any value of ``kind``."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _readable(field.type)) for field in kind])
    return kind


def _converter(kind: pa.DataType) -> Convert:
    """From a value of the readable type to JSON; the value is not null."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: value.decode(errors="replace")
    if pa.types.is_timestamp(kind):
        return _instant if kind.tz else lambda value: _instant(value)[:-1]
    if pa.types.is_date32(kind):
        return lambda value: str(np.datetime64(value, "D"))
    if pa.types.is_list(kind):
        each = _converter(kind.value_type)
        return lambda values: [None if value is None else each(value) for value in values]
    if pa.types.is_struct(kind):
        members = {field.name: _converter(field.type) for field in kind}
        return lambda found: {n: None if found[n] is None else c(found[n]) for n, c in members.items()}
    return _SCALARS.get(kind, _decimal if pa.types.is_decimal(kind) else lambda value: value)


def _instant(micros: int) -> str:
    unit, count = ("us", micros) if micros % 1_000_000 else ("s", micros // 1_000_000)
    return f"{np.datetime64(count, unit)}Z"  # type: ignore[call-overload]


def _decimal(value: Any) -> str:
    return format(value, "f")


def _interval(value: timedelta) -> str:
    return str(value)


_SCALARS: dict[pa.DataType, Convert] = {
    pa.int64(): str,
    pa.binary(): bytes.hex,
    pa.large_binary(): bytes.hex,
    pa.duration("us"): _interval,
}
