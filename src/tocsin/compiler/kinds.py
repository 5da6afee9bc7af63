"""Types of expressions over a record, as far as they are certain.

The index compares values of one type, Spark coerces. An index may answer only where the type of the
record's side is known for sure, so everything that is not plainly typed is "unknown" here, and the
join answers it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tocsin.model.types import SqlType

BOOLEAN, INT, BIGINT, DOUBLE, STRING, TIMESTAMP, DATE = (
    SqlType(name) for name in ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE")
)
_CASTS = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "DATE": DATE,
}
_TEXTS = (exp.Lower, exp.Upper, exp.Trim, exp.Substring, exp.Concat, exp.Replace, exp.Initcap, exp.RegexpReplace)
_WIDTH = {"INT": 0, "BIGINT": 1, "DOUBLE": 2}

ColumnType = Callable[[exp.Column], SqlType | None]


def type_of(node: exp.Expr, column_type: ColumnType) -> SqlType | None:
    """The type of an expression, or ``None`` where it is not certain."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return column_type(node)
    if isinstance(node, exp.Cast):
        return _CASTS.get(node.to.this.name) if not node.to.expressions else None
    if isinstance(node, _TEXTS):
        return STRING if type_of(node.this or node.expressions[0], column_type) == STRING else None
    if isinstance(node, exp.Literal) and node.is_string:
        return STRING
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        both = {type_of(node.this, column_type), type_of(node.expression, column_type)}
        return DOUBLE if both == {DOUBLE} else None
    if isinstance(node, exp.Abs | exp.Neg):
        inner = type_of(node.this, column_type)
        return DOUBLE if inner == DOUBLE else None
    return None


def common_type(record: SqlType, parameter: SqlType) -> SqlType | None:
    """The type in which Spark compares the two, or ``None`` where the index should not try.

    Widening is safe on both sides: INT to BIGINT to DOUBLE, and DATE to TIMESTAMP on the record's.
    """
    if record == parameter:
        return record
    if record.is_array or parameter.is_array:
        return None
    if record.name in _WIDTH and parameter.name in _WIDTH:
        return max(record, parameter, key=lambda t: _WIDTH[t.name])
    if (record, parameter) == (DATE, TIMESTAMP):
        return TIMESTAMP
    return None
