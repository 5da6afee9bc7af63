"""SQL types of columns and parameters, and the one JSON form of their values.

BIGINT and DECIMAL travel as JSON strings, because JavaScript's numbers lose digits past 2**53; both
a string and a number are accepted on the way in. TIMESTAMP is ISO 8601 in UTC, DATE is ISO 8601.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any

from tocsin.errors import BadArgument

SCALARS = ("BOOLEAN", "INT", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE", "DECIMAL")
ALIASES = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "FLOAT": "DOUBLE",
    "REAL": "DOUBLE",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "BOOL": "BOOLEAN",
    "NUMERIC": "DECIMAL",
}

_INT_BOUNDS = {"INT": 2**31, "BIGINT": 2**63}
_EXACT = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)  # more digits than any DECIMAL has


@dataclass(frozen=True, slots=True)
class SqlType:
    """A scalar type, or an array of one when ``is_array``."""

    name: str
    precision: int = 0
    scale: int = 0
    is_array: bool = False

    def __str__(self) -> str:
        inner = f"DECIMAL({self.precision}, {self.scale})" if self.name == "DECIMAL" else self.name
        return f"ARRAY<{inner}>" if self.is_array else inner

    @property
    def element(self) -> SqlType:
        return SqlType(self.name, self.precision, self.scale)

    def parse(self, value: Any, where: str) -> Any:
        """The Python value for a JSON value, or BadArgument naming ``where``. ``None`` stays ``None``."""
        if value is None:
            return None
        if self.is_array:
            if not isinstance(value, list | tuple):
                raise BadArgument(where, f"a list of {self.element}", value)
            return [self.element.parse(v, where) for v in value]
        return _PARSERS[self.name](self, value, where)

    def to_json(self, value: Any) -> Any:
        """The JSON form of a Python value of this type."""
        if value is None:
            return None
        if self.is_array:
            return [self.element.to_json(v) for v in value]
        if self.name in ("BIGINT", "DECIMAL"):
            return str(value)
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        if isinstance(value, date):
            return value.isoformat()
        return value


def _boolean(_: SqlType, value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise BadArgument(where, "true or false", value)


def _integer(sql: SqlType, value: Any, where: str) -> int:
    bound = _INT_BOUNDS[sql.name]
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,19}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -bound <= value < bound:
        raise BadArgument(where, f"{sql.name}, an integer from {-bound} to {bound - 1}", value)
    return value


def _double(_: SqlType, value: Any, where: str) -> float:
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise BadArgument(where, "DOUBLE, a finite number", value)


def _string(_: SqlType, value: Any, where: str) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadArgument(where, "STRING, valid Unicode", ascii(value)) from None
        return value
    raise BadArgument(where, "STRING", value)


def _timestamp(_: SqlType, value: Any, where: str) -> datetime:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    raise BadArgument(where, "TIMESTAMP, such as '2026-01-31T12:00:00Z'", value)


def _date(_: SqlType, value: Any, where: str) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise BadArgument(where, "DATE, such as '2026-01-31'", value)


def _decimal(sql: SqlType, value: Any, where: str) -> Decimal:
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            number = Decimal(str(value))
            kept = number.quantize(Decimal((0, (1,), -sql.scale)), context=_EXACT)
            if kept == number and kept.adjusted() < sql.precision - sql.scale:
                return kept
        except InvalidOperation:
            pass
    raise BadArgument(where, f"{sql} with at most {sql.scale} decimals", value)


_PARSERS = {
    "BOOLEAN": _boolean,
    "INT": _integer,
    "BIGINT": _integer,
    "DOUBLE": _double,
    "STRING": _string,
    "TIMESTAMP": _timestamp,
    "DATE": _date,
    "DECIMAL": _decimal,
}
