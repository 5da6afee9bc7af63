"""CREATE, DROP and ALTER DATASET, LOAD DATASET.

Columns of the primary key are NOT NULL without saying so, and never arrays.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from tocsin.errors import Span
from tocsin.language.clauses import (
    FORMATS,
    filled,
    if_exists,
    if_not_exists,
    listed,
    record_format,
    refuse_twice,
    retention,
    sql_type,
)
from tocsin.language.cursor import Cursor
from tocsin.language.statements import (
    AlterDatasetAddColumn,
    AlterDatasetDropColumn,
    CreateDataset,
    DropDataset,
    LoadDataset,
    Statement,
)
from tocsin.language.tokens import Token
from tocsin.model.catalog import Column, DatasetSpec, Retention

DATASET_NAME = "a dataset name"
COLUMN_NAME = "a column name"


class _Body:
    """What the brackets and the clauses after them have said so far."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.key: list[tuple[str, Token]] = []

    def finish(self, c: Cursor) -> tuple[tuple[Column, ...], tuple[str, ...]]:
        """Columns and key, the key in the columns' own spelling."""
        spelt = tuple(self._key_column(c, name, at) for name, at in self.key)
        return tuple(replace(col, not_null=col.not_null or col.name in spelt) for col in self.columns), spelt

    def _key_column(self, c: Cursor, name: str, at: Token) -> str:
        column = next((col for col in self.columns if col.name.lower() == name.lower()), None)
        if column is None:
            known = ", ".join(col.name for col in self.columns)
            raise c.problem(f"the key names {name!r}, which is no column", at=at, expected=f"one of {known}")
        if column.type.is_array:
            raise c.problem(f"column {column.name!r} is an array", at=at, expected="scalar columns in a key")
        return column.name


def create_dataset(c: Cursor) -> Statement:
    active = c.accept("ACTIVE")
    c.expect("DATASET")
    lenient = if_not_exists(c)
    name_span = c.span()
    name = c.name(DATASET_NAME)
    body = _Body()
    listed(c, lambda c: _element(c, body))
    retain = _after_brackets(c, body)
    columns, key = body.finish(c)
    if not columns:
        raise c.problem("a dataset without columns", expected="at least one column")
    spec = DatasetSpec(name, columns, key, active, retain)
    return CreateDataset(spec, lenient, span=c.first_span, name_span=name_span)


def _element(c: Cursor, body: _Body) -> None:
    if c.at("PRIMARY", "KEY"):
        _key_clause(c, body)
        return
    at = c.token
    name = c.name(COLUMN_NAME)
    refuse_twice(c, name, [col.name for col in body.columns], "column", at)
    kind = sql_type(c)
    not_null = c.accept("NOT", "NULL")
    if c.at("PRIMARY", "KEY"):
        _refuse_second_key(c, body)
        c.expect("PRIMARY", "KEY")
        body.key.append((name, at))
        not_null = c.accept("NOT", "NULL") or not_null
    body.columns.append(Column(name, kind, not_null))


def _refuse_second_key(c: Cursor, body: _Body) -> None:
    if body.key:
        raise c.problem("a second PRIMARY KEY", expected="one, such as PRIMARY KEY (a, b)")


def _key_clause(c: Cursor, body: _Body) -> None:
    _refuse_second_key(c, body)
    c.expect("PRIMARY", "KEY")
    listed(c, lambda c: _key_part(c, body))


def _key_part(c: Cursor, body: _Body) -> None:
    at = c.token
    name = c.name(COLUMN_NAME)
    refuse_twice(c, name, [n for n, _ in body.key], "key column", at)
    body.key.append((name, at))


def _after_brackets(c: Cursor, body: _Body) -> Retention:
    """PRIMARY KEY and RETAIN, in either order."""
    retain: Retention | None = None
    while True:
        if c.at("PRIMARY", "KEY"):
            _key_clause(c, body)
        elif retain is None and c.accept("RETAIN"):
            retain = retention(c)
        else:
            return retain or Retention()


def drop_dataset(c: Cursor) -> Statement:
    c.expect("DATASET")
    lenient = if_exists(c)
    name_span = c.span()
    return DropDataset(c.name(DATASET_NAME), lenient, span=c.first_span, name_span=name_span)


def alter_dataset(c: Cursor) -> Statement:
    c.expect("ALTER", "DATASET")
    name_span = c.span()
    name = c.name(DATASET_NAME)
    if c.accept("ADD"):
        return _add_column(c, name, name_span)
    c.expect("DROP", "COLUMN")
    lenient = if_exists(c)
    return AlterDatasetDropColumn(name, c.name(COLUMN_NAME), lenient, span=c.first_span, name_span=name_span)


def _add_column(c: Cursor, name: str, name_span: Span) -> Statement:
    c.expect("COLUMN")
    lenient = if_not_exists(c)
    column = Column(c.name(COLUMN_NAME), sql_type(c))
    if c.token.keyword in ("NOT", "PRIMARY"):
        raise c.problem("an added column is NULL in the records that are there", expected="a column that may be NULL")
    return AlterDatasetAddColumn(name, column, lenient, span=c.first_span, name_span=name_span)


def load_dataset(c: Cursor) -> Statement:
    c.expect("LOAD", "DATASET")
    name_span = c.span()
    name = c.name(DATASET_NAME)
    c.expect("FROM")
    at = c.token
    path = filled(c, "the path of a file, in quotes")
    stated = record_format(c) or FORMATS.get(PurePosixPath(path).suffix[1:].upper())
    if stated is None:
        raise c.problem(
            f"the name '{path:.80}' does not tell its format", at=at, expected="FORMAT json, csv or parquet after it"
        )
    return LoadDataset(name, path, stated, span=c.first_span, name_span=name_span)
