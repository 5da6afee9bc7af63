"""Values that statements and requests give, as a dataset's columns declare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.errors import BadArgument, NotFound
from tocsin.model.catalog import DatasetSpec


def typed_record(spec: DatasetSpec, row: Mapping[str, Any]) -> dict[str, Any]:
    """A whole record; ``BadArgument`` names the value that does not fit or is missing."""
    known = {c.name.lower(): c for c in spec.columns}
    values = {}
    for name, value in row.items():
        column = known.get(name.lower())
        if column is None:
            raise NotFound("column", f"{spec.name}.{name}", [c.name for c in spec.columns])
        values[column.name] = column.type.parse(list(value) if isinstance(value, tuple) else value, column.name)
    for column in spec.columns:
        if values.get(column.name) is None and (column.not_null or column.name in spec.primary_key):
            raise BadArgument(column.name, f"a value of {column.type}", None)
    return values


def typed_key(spec: DatasetSpec, key: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each column of the primary key, and no other."""
    given = {name.lower(): value for name, value in key.items()}
    if set(given) != {k.lower() for k in spec.primary_key}:
        raise BadArgument("key", f"a value for each of {', '.join(spec.primary_key)}", sorted(key))
    typed = {}
    for name in spec.primary_key:
        column = spec.column(name)
        assert column is not None
        value = column.type.parse(given[name.lower()], name)
        if value is None:
            raise BadArgument(name, f"a value of {column.type}", None)
        typed[column.name] = value
    return typed
