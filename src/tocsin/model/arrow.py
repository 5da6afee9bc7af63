"""The Arrow form of SQL types; apart from ``types``, so that what only names types need not load Arrow."""

from __future__ import annotations

import pyarrow as pa

from tocsin.model.types import SqlType

_SCALARS = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DATE": pa.date32(),
}


def arrow_type(sql: SqlType) -> pa.DataType:
    """The Arrow type that holds values of ``sql``."""
    if sql.is_array:
        return pa.list_(arrow_type(sql.element))
    if sql.name == "DECIMAL":
        return pa.decimal128(sql.precision, sql.scale)
    return _SCALARS[sql.name]
