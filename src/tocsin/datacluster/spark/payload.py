"""The payload of a notification: the channel's columns as one JSON object, made by Spark.

BIGINT and DECIMAL become strings wherever they stand, inside arrays and structs too, because JSON
numbers lose their digits in JavaScript. NULLs are written, so that every notification of a channel has
the same keys. Instants keep their microseconds, of which Spark itself writes three digits; a column's are
written as everywhere (``tocsin.model.types``), those inside arrays and structs always with six digits.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_INSTANT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_OPTIONS_SQL = f"""map('ignoreNullFields', 'false', 'timestampFormat', "{_INSTANT}")"""


def payload_sql(outputs: list[tuple[str, str, DataType]]) -> str:
    """``to_json`` over (name, SQL expression, type) outputs."""
    fields = ", ".join(f"{_safe_sql(expression, kind)} AS `{name}`" for name, expression, kind in outputs)
    return f"to_json(struct({fields}), {_OPTIONS_SQL})" if fields else "'{}'"


def _safe_sql(expression: str, kind: DataType) -> str:
    if isinstance(kind, TimestampType):
        return f"""replace(date_format({expression}, "{_INSTANT}"), '.000000', '')"""
    safe = _javascript_safe(kind)
    return expression if safe == kind else f"CAST({expression} AS {safe.simpleString()})"


def _javascript_safe(kind: DataType) -> DataType:
    """The same type with 64-bit and decimal numbers replaced by strings."""
    if isinstance(kind, LongType | DecimalType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_javascript_safe(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_javascript_safe(kind.keyType), _javascript_safe(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _javascript_safe(f.dataType), f.nullable) for f in kind.fields])
    return kind
