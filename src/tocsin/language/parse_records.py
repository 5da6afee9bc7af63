"""INSERT INTO (or UPSERT INTO) and DELETE FROM.

DELETE names records by their key only: ``key = v``, ``a = v AND b = w``, ``key IN (v, w)`` or
``(a, b) IN ((v, w), …)``.
"""

from __future__ import annotations

from tocsin.language.clauses import listed, refuse_twice
from tocsin.language.cursor import Cursor
from tocsin.language.literals import literal, scalar
from tocsin.language.parse_dataset import COLUMN_NAME, DATASET_NAME
from tocsin.language.statements import DeleteRecords, InsertRecords, Literal, Scalar, Statement


def insert_records(c: Cursor) -> Statement:
    c.advance()  # INSERT or UPSERT
    c.expect("INTO")
    name_span = c.span()
    name = c.name(DATASET_NAME)
    columns = _columns(c) if c.at_symbol("(") else ()
    c.expect("VALUES")
    rows = [_row(c, len(columns))]
    while c.accept_symbol(","):
        rows.append(_row(c, len(rows[0])))
    return InsertRecords(name, columns, tuple(rows), span=c.first_span, name_span=name_span)


def _columns(c: Cursor) -> tuple[str, ...]:
    names: list[str] = []
    listed(c, lambda c: _column(c, names))
    return tuple(names)


def _column(c: Cursor, names: list[str]) -> None:
    at = c.token
    name = c.name(COLUMN_NAME)
    refuse_twice(c, name, names, "column", at)
    names.append(name)


def _row(c: Cursor, width: int) -> tuple[Literal, ...]:
    """One row in brackets; ``width`` 0 means that it sets the width."""
    at = c.token
    row = tuple(listed(c, literal))
    if width and len(row) != width:
        raise c.problem(f"a row of {len(row)}", at=at, expected=f"{width} values as in the rest")
    return row


def delete_records(c: Cursor) -> Statement:
    c.expect("DELETE", "FROM")
    name_span = c.span()
    name = c.name(DATASET_NAME)
    c.expect("WHERE")
    columns, keys = _rows_in(c) if c.at_symbol("(") else _by_name(c)
    return DeleteRecords(name, columns, keys, span=c.first_span, name_span=name_span)


_Keys = tuple[tuple[str, ...], tuple[tuple[Scalar, ...], ...]]


def _rows_in(c: Cursor) -> _Keys:
    columns = _columns(c)
    c.expect("IN")
    return columns, tuple(listed(c, lambda c: _key_row(c, len(columns))))


def _key_row(c: Cursor, width: int) -> tuple[Scalar, ...]:
    at = c.token
    row = tuple(listed(c, _key_value))
    if len(row) != width:
        raise c.problem(f"a key of {len(row)}", at=at, expected=f"{width} values, one for each column")
    return row


def _by_name(c: Cursor) -> _Keys:
    columns: list[str] = []
    _column(c, columns)
    if c.accept("IN"):
        return tuple(columns), tuple((v,) for v in listed(c, _key_value))
    values = [_equals(c)]
    while c.accept("AND"):
        _column(c, columns)
        values.append(_equals(c))
    return tuple(columns), (tuple(values),)


def _equals(c: Cursor) -> Scalar:
    c.expect_symbol("=")
    return _key_value(c)


def _key_value(c: Cursor) -> Scalar:
    if c.token.keyword == "NULL":
        raise c.problem("a key is never NULL", expected="a value")
    return scalar(c)
