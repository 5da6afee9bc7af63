from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.parse_records import parse_json_lines
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

SPEC = DatasetSpec(
    "D",
    (
        Column("id", SqlType("STRING")),
        Column("ok", SqlType("BOOLEAN")),
        Column("i", SqlType("INT"), not_null=True),
        Column("big", SqlType("BIGINT")),
        Column("x", SqlType("DOUBLE")),
        Column("at", SqlType("TIMESTAMP")),
        Column("day", SqlType("DATE")),
        Column("price", SqlType("DECIMAL", 20, 2)),
        Column("tags", SqlType("STRING", is_array=True)),
        Column("class", SqlType("STRING")),
    ),
    ("id",),
)


def test_values_of_every_type_are_read() -> None:
    line = (
        b'{"id": "a", "ok": true, "i": 1, "big": "9007199254740993", "x": 2, "at": "2026-01-31T13:00:00+01:00",'
        b'"day": "2026-01-31", "price": 12345678901234567.25, "tags": ["p", null], "class": "\\u00fc"}'
    )
    table, bad = parse_json_lines(line, SPEC)
    assert bad == []
    assert table.schema == arrow_schema(SPEC)
    assert table.to_pylist() == [
        {
            "id": "a", "ok": True, "i": 1, "big": 2**53 + 1, "x": 2.0,
            "at": datetime(2026, 1, 31, 12, tzinfo=UTC), "day": date(2026, 1, 31),
            "price": Decimal("12345678901234567.25"), "tags": ["p", None], "class": "ü",
        }
    ]  # fmt: skip


def test_what_a_line_leaves_out_is_null() -> None:
    table, bad = parse_json_lines(b'{"id": "a", "i": 1}\n{"id": "b", "i": 2, "x": null}\n', SPEC)
    assert (bad, table.column("x").to_pylist(), table.column("tags").null_count) == ([], [None, None], 2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(b"nope", "not a JSON object", id="not JSON"),
        pytest.param(b"[1]", "not a JSON object", id="not an object"),
        pytest.param(b'{"id": "a", "i": 1', "not a JSON object", id="cut off"),
        pytest.param(b'{"id": "a", "i": 1, "claas": "x"}', "unknown column 'claas'; did you mean 'class'?", id="typo"),
        pytest.param(b'{"i": 1}', "column 'id' must not be NULL", id="a key is missing"),
        pytest.param(b'{"id": "a"}', "column 'i' must not be NULL", id="NOT NULL is missing"),
        pytest.param(b'{"id": "a", "i": null}', "column 'i' must not be NULL", id="NOT NULL is null"),
        pytest.param(b'{"id": 5, "i": 1}', "id: expected STRING, got 5", id="a number for a string"),
        pytest.param(b'{"id": "a", "i": 2147483648}', "i: expected INT, an integer from", id="out of range"),
        pytest.param(b'{"id": "a", "i": 1.5}', "i: expected INT, an integer from", id="a fraction"),
        pytest.param(b'{"id": "a", "i": true}', "i: expected INT, an integer from", id="a boolean for a number"),
        pytest.param(b'{"id": "a", "i": 1, "ok": 1}', "ok: expected true or false, got 1", id="a number for a boolean"),
        pytest.param(b'{"id": "a", "i": 1, "x": 1e400}', "x: expected DOUBLE", id="an infinite number"),
        pytest.param(b'{"id": "a", "i": 1, "at": "noon"}', "at: expected TIMESTAMP, such as", id="no timestamp"),
        pytest.param(b'{"id": "a", "i": 1, "price": 0.123}', "with at most 2 decimals", id="too many decimals"),
        pytest.param(b'{"id": "a", "i": 1, "tags": "p"}', "tags: expected a list of STRING", id="no list"),
        pytest.param(b'{"id": "a", "i": 1, "tags": [1]}', "tags: expected STRING, got 1", id="another element"),
        pytest.param(b'{"id": "\xff", "i": 1}', "id: expected STRING", id="no UTF-8"),
        pytest.param(b'{"id": "' + b"a" * 200 + b'", "i": 1}', "too long: 218 bytes, at most 150", id="too long"),
    ],
)
def test_a_bad_line_has_a_reason_and_spares_the_others(line: bytes, reason: str) -> None:
    body = b'{"id": "first", "i": 1}\n\n' + line + b'\n{"id": "last", "i": "3"}\r\n'
    table, bad = parse_json_lines(body, SPEC, max_record_bytes=150)
    assert table.select(["id", "i"]).to_pylist() == [{"id": "first", "i": 1}, {"id": "last", "i": 3}]
    assert [(b.line_no, b.raw) for b in bad] == [(3, line.decode(errors="replace"))]
    assert reason in bad[0].reason


def test_names_are_found_in_any_case() -> None:
    table, bad = parse_json_lines(b'{"ID": "a", "I": 1}', SPEC)
    assert (bad, table.num_rows) == ([], 1)


def test_nothing_is_an_empty_table() -> None:
    table, bad = parse_json_lines(b"", SPEC)
    assert (table.num_rows, table.schema, bad) == (0, arrow_schema(SPEC), [])
