"""Names, values and clauses as canonical text; the printer's pieces."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from tocsin.language.statements import Literal
from tocsin.language.units import format_duration, format_size
from tocsin.model.catalog import Column, Parameter, Retention

# Where one of these starts a name, a clause could be meant.
_AMBIGUOUS = frozenset({"IF", "PRIMARY", "AS", "DATASET", "CHANNEL", "ARRAY"})


def name_sql(name: str) -> str:
    return f"`{name}`" if name.upper() in _AMBIGUOUS else name


def string_sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal_sql(value: Literal) -> str:
    if isinstance(value, tuple):
        return f"ARRAY({', '.join(literal_sql(v) for v in value)})"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return string_sql(value)
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


def listed_sql(items: Iterable[str]) -> str:
    return f"({', '.join(items)})"


def names_sql(names: Iterable[str]) -> str:
    return listed_sql(name_sql(n) for n in names)


def values_sql(values: Iterable[Literal]) -> str:
    return listed_sql(literal_sql(v) for v in values)


def column_sql(column: Column) -> str:
    return joined(name_sql(column.name), str(column.type), column.not_null and "NOT NULL")


def parameter_sql(parameter: Parameter) -> str:
    return f"{name_sql(parameter.name)} {parameter.type}"


def retention_sql(retain: Retention) -> str:
    """The limits, such as ``'7d' AND 1 GB``, or nothing where everything is kept."""
    limits = [
        "" if retain.age_s is None else string_sql(format_duration(retain.age_s)),
        "" if retain.records is None else f"{retain.records} RECORDS",
        "" if retain.size_bytes is None else format_size(retain.size_bytes),
    ]
    return " AND ".join(limit for limit in limits if limit)


def retain_sql(retain: Retention) -> str:
    """The whole clause, or nothing."""
    limits = retention_sql(retain)
    return f"RETAIN {limits}" if limits else ""


def joined(*parts: str | bool) -> str:
    """The parts that say something, one space between them."""
    return " ".join(part for part in parts if isinstance(part, str) and part)
