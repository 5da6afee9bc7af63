"""CSV to tables of records, with a reason for each row that does not fit.

The header names columns of the dataset in any order and case, each once; columns that it leaves out are
NULL, so it must name those that cannot be. A header that does not hold to this refuses the whole text,
since every row would fail for the same reason. A row has as many fields as the header; an empty field is
NULL, blank rows are skipped. What fits is decided in one place: a row is rewritten as a JSON line and goes
through that parser.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from tocsin.datacluster.storage.parse_records import MAX_RECORD_BYTES, BadRecord, parse_json_lines
from tocsin.errors import BadRecords, nearest
from tocsin.model.catalog import DatasetSpec
from tocsin.model.types import SqlType

PIECE_ROWS = 20_000
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")

Piece = tuple[pa.Table, list[BadRecord]]


class _Row(NamedTuple):
    """``line`` is where it begins in the text, counted from 1; ``raw`` its text as written."""

    line: int
    fields: list[str]
    raw: str
    problem: str | None


def parse_csv(content: bytes, dataset: DatasetSpec, max_record_bytes: int = MAX_RECORD_BYTES) -> Piece:
    """All records that fit, in order, and the rows that do not; ``BadRecords`` if the header is wrong."""
    tables, bad = [parse_json_lines(b"", dataset)[0]], []
    for table, rejected in csv_pieces(content, dataset, max_record_bytes):
        tables.append(table)
        bad += rejected
    return pa.concat_tables(tables), bad


def csv_pieces(content: bytes, dataset: DatasetSpec, max_record_bytes: int = MAX_RECORD_BYTES) -> Iterator[Piece]:
    """As ``parse_csv``, in pieces of ``PIECE_ROWS`` rows."""
    _allow_fields(max_record_bytes)
    rows = _rows(content)
    header = next(rows, None)
    if header is None:
        return
    if problem := header.problem or header_problem(header.fields, dataset):
        raise BadRecords(f"the header of the CSV: {problem}")
    held: list[_Row] = []
    for row in rows:
        held.append(row)
        if len(held) == PIECE_ROWS:
            yield _piece(held, header.fields, dataset, max_record_bytes)
            held = []
    yield _piece(held, header.fields, dataset, max_record_bytes)


def _allow_fields(size: int) -> None:
    """Fields as long as records may be: of one that is cut off, the rest would be read as rows.

    The limit is one for the process, so it is never lowered.
    """
    csv.field_size_limit(max(size, csv.field_size_limit()))


def header_problem(names: list[str], dataset: DatasetSpec) -> str | None:
    """What is wrong with these names for columns, in one sentence."""
    known = [column.name for column in dataset.columns]
    unknown = [name for name in names if dataset.column(name) is None]
    if unknown:
        close = nearest(unknown[0], known) if unknown[0].isidentifier() else ""
        hint = close or f"; expected some of {', '.join(known)}, with commas between"
        return f"{dataset.name!r} has no {_columns(unknown)}{hint}"
    lower = [name.lower() for name in names]
    if twice := [name for at, name in enumerate(names) if name.lower() in lower[:at]]:
        return f"it names {_columns(twice)} twice"
    keys = {key.lower() for key in dataset.primary_key}
    needed = [c.name for c in dataset.columns if c.not_null or c.name.lower() in keys]
    if missing := [name for name in needed if name.lower() not in lower]:
        return f"it lacks {_columns(missing)}, which must not be NULL"
    return None


def _columns(names: list[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def _piece(rows: list[_Row], names: list[str], dataset: DatasetSpec, max_record_bytes: int) -> Piece:
    types = [column.type if (column := dataset.column(name)) else None for name in names]
    problems = [row.problem or _width_problem(row.fields, names) for row in rows]
    fitting = [row for row, problem in zip(rows, problems, strict=True) if problem is None]
    lines = [_json_line(row.fields, names, types) for row in fitting]
    table, refused = parse_json_lines(b"\n".join(lines), dataset, max_record_bytes)
    bad = [BadRecord(r.line, r.raw, why) for r, why in zip(rows, problems, strict=True) if why is not None]
    found = [(fitting[one.line_no - 1], one.reason) for one in refused]
    bad += [BadRecord(row.line, row.raw, reason) for row, reason in found]
    return table, sorted(bad, key=lambda one: one.line_no)


def _json_line(fields: list[str], names: list[str], types: list[SqlType | None]) -> bytes:
    values = (_from_text(text, sql) for text, sql in zip(fields, types, strict=True))
    return json.dumps(dict(zip(names, values, strict=True))).encode()


def _width_problem(fields: list[str], names: list[str]) -> str | None:
    if len(fields) == len(names):
        return None
    return f"expected {len(names)} fields, as in the header, got {len(fields)}"


def _rows(content: bytes) -> Iterator[_Row]:
    """The rows, the header among them, without blank ones."""
    text = content.decode("utf-8-sig", errors="replace")
    damaged = "\ufffd" in text and not _is_utf8(content)
    tape: list[str] = []
    reader = csv.reader(_recorded(io.StringIO(text, newline=""), tape), strict=True)
    while True:
        tape.clear()
        line, problem = reader.line_num + 1, None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as failure:
            fields, problem = [], f"not CSV: {failure}"
        raw = "".join(tape).rstrip("\r\n")
        if damaged and "\ufffd" in raw:
            problem = "not valid UTF-8"
        if fields or problem:
            yield _Row(line, fields, raw, problem)


def _recorded(lines: io.StringIO, tape: list[str]) -> Iterator[str]:
    for line in lines:
        tape.append(line)
        yield line


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _from_text(text: str, sql: SqlType | None) -> Any:
    """The JSON value that a field stands for; what does not convert stays text, and is refused later."""
    if text == "":
        return None
    if sql is None:
        return text
    try:
        return _CONVERTERS["ARRAY" if sql.is_array else sql.name](text)
    except (KeyError, ValueError):
        return text


def _number(text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "BOOLEAN": lambda text: {"true": True, "false": False}[text.strip().lower()],
    "INT": str.strip,
    "BIGINT": str.strip,
    "DOUBLE": _number,
    "DECIMAL": str.strip,
    "ARRAY": json.loads,
}
