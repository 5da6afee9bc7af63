"""Arrow columns as numpy arrays in the form in which two SQL types are compared.

``common_type`` says in which type a record's value and a parameter meet, as Spark does: integers
widen to BIGINT, any number beside a DOUBLE becomes one, integers beside a DECIMAL become one, a DATE
beside a TIMESTAMP is its midnight in UTC. Strings and booleans meet only their own kind.

``ordered`` gives 64-bit integers that sort as the values do, with NaN above every number and -0.0
equal to 0.0; a DECIMAL of more than 18 digits needs a second word, compared where the first is equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tocsin.errors import BadArgument, InvalidQuery
from tocsin.model.types import SqlType

Bools = NDArray[np.bool_]
F64s = NDArray[np.float64]
I64s = NDArray[np.int64]
U64s = NDArray[np.uint64]

BIGINT, DOUBLE, TIMESTAMP = SqlType("BIGINT"), SqlType("DOUBLE"), SqlType("TIMESTAMP")
_INTEGERS = {"INT": 10, "BIGINT": 19}  # and their digits
_MAX_DIGITS, _NARROW_DIGITS = 38, 18


def common_type(probe: SqlType, param: SqlType) -> SqlType:
    """The type in which both are compared; InvalidQuery where there is none."""
    names = {probe.name, param.name}
    if names <= _INTEGERS.keys():
        return BIGINT
    if names <= _INTEGERS.keys() | {"DECIMAL"}:
        return _wider_decimal(probe, param)
    if names <= _INTEGERS.keys() | {"DECIMAL", "DOUBLE"}:
        return DOUBLE
    if names == {"DATE", "TIMESTAMP"}:
        return TIMESTAMP
    if len(names) == 1:
        return probe.element
    raise InvalidQuery(f"an index cannot compare {probe} with {param}", expected="two values of one kind")


def _wider_decimal(*sides: SqlType) -> SqlType:
    scale = max(t.scale for t in sides)
    digits = max(_INTEGERS.get(t.name, t.precision) - t.scale for t in sides) + scale
    if digits > _MAX_DIGITS:
        problem = f"an index cannot compare {sides[0]} with {sides[1]}: together they need {digits} digits"
        raise InvalidQuery(problem, expected=f"at most {_MAX_DIGITS}")
    return SqlType("DECIMAL", digits, scale)


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One plain array: chunks joined, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # no chunks at all
        column = pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def valid(column: pa.Array) -> Bools:
    """Which values are not NULL."""
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    mask: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def integers(column: pa.Array, sql: SqlType, where: str) -> I64s:
    """Integers, booleans, days or microseconds as int64; any value where NULL."""
    if sql.name == "TIMESTAMP":
        return _numpy(_cast(_micros(column, where), pa.int64(), sql, where), np.int64)
    if sql.name == "DATE":
        column = _cast(_cast(column, pa.date32(), sql, where), pa.int32(), sql, where)
    return _numpy(_cast(column, pa.int64(), sql, where), np.int64)


def _micros(column: pa.Array, where: str) -> pa.Array:
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    return _cast(column, pa.timestamp("us", zone), TIMESTAMP, where)


def floats(column: pa.Array, where: str) -> F64s:
    """Numbers as doubles, rounded as Java rounds them; any value where NULL."""
    if pa.types.is_decimal(column.type):
        column = _cast(column, pa.string(), DOUBLE, where)
    elif pa.types.is_integer(column.type):
        return _numpy(column, np.float64)
    elif pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
        raise BadArgument(where, "numbers", str(column.type))
    return _numpy(_cast(column, pa.float64(), DOUBLE, where), np.float64)


def canonical_bits(values: F64s) -> I64s:
    """The bits of doubles with one zero and one NaN."""
    plain = np.where(np.isnan(values), np.nan, values) + 0.0
    return np.ascontiguousarray(plain).view(np.int64)


def decimal_words(column: pa.Array, sql: SqlType, where: str) -> tuple[U64s, I64s]:
    """The low and the high half of unscaled decimals; zeros where NULL."""
    exact = _cast(column, pa.decimal128(sql.precision, sql.scale), sql, where)
    exact = pc.fill_null(exact, pa.scalar(0, exact.type)) if exact.null_count else exact
    words = np.frombuffer(exact.buffers()[1] or b"", np.uint64, 2 * len(exact), exact.offset * 16)
    return words[::2].copy(), words[1::2].copy().view(np.int64)


def ordered(column: pa.Array, sql: SqlType, where: str) -> tuple[I64s, U64s]:
    """(first words, second words); the latter empty unless ``is_wide(sql)``."""
    none = np.empty(0, np.uint64)
    if sql.name == "DOUBLE":
        bits = canonical_bits(floats(column, where))
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), none
    if sql.name != "DECIMAL":
        return integers(column, sql, where), none
    low, high = decimal_words(column, sql, where)
    return (high, low) if is_wide(sql) else (low.view(np.int64), none)


def is_wide(sql: SqlType) -> bool:
    return sql.name == "DECIMAL" and sql.precision > _NARROW_DIGITS


def _cast(column: pa.Array, to: pa.DataType, sql: SqlType, where: str) -> pa.Array:
    if column.type == to:
        return column
    try:
        return pc.cast(column, to, safe=not pa.types.is_timestamp(to))
    except pa.ArrowException as problem:
        raise BadArgument(where, f"values that read as {sql}", f"{column.type}: {problem}") from None


def _numpy(column: pa.Array, dtype: Any) -> NDArray[Any]:
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(0, column.type))
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).astype(dtype, copy=False)
