from __future__ import annotations

import json
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest

from tocsin.datacluster.json_rows import json_rows, rows_within

MOMENT = pa.array([1], pa.int64())
BAD_TEXT = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")])
UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        pytest.param(pa.array([1], pa.int64()), "1", id="BIGINT, also when it is small"),
        pytest.param(pa.array([2**62], pa.int64()), str(2**62), id="BIGINT"),
        pytest.param(pa.array([7], pa.int32()), 7, id="INT"),
        pytest.param(pa.array([1.5]), 1.5, id="DOUBLE"),
        pytest.param(pa.array([True]), True, id="BOOLEAN"),
        pytest.param(pa.array([Decimal("0.000000000000")], pa.decimal128(20, 12)), "0.000000000000", id="DECIMAL"),
        pytest.param(pa.array(["né"]), "né", id="STRING"),
        pytest.param(BAD_TEXT, "a\ufffd", id="a text that is no UTF-8"),
        pytest.param(pa.array([b"\x00\xff"]), "00ff", id="BINARY"),
        pytest.param(pa.array([0], pa.int32()).cast(pa.date32()), "1970-01-01", id="DATE"),
        pytest.param(pa.array([10**7], pa.int32()).cast(pa.date32()), "29349-01-26", id="a DATE beyond 9999"),
        pytest.param(pa.array([10**6], pa.int64()).cast(UTC), "1970-01-01T00:00:01Z", id="TIMESTAMP"),
        pytest.param(MOMENT.cast(UTC), "1970-01-01T00:00:00.000001Z", id="a part of a second"),
        pytest.param(MOMENT.cast(pa.timestamp("us")), "1970-01-01T00:00:00.000001", id="no zone"),
        pytest.param(pa.array([2**62], pa.int64()).cast(UTC), "148108-07-06T14:00:27.387904Z", id="beyond 9999"),
        pytest.param(pa.array([None], pa.int64()), None, id="NULL"),
        pytest.param(pa.array([None]), None, id="NULL without a type"),
        pytest.param(pa.array([[1, None]], pa.list_(pa.int64())), ["1", None], id="an array"),
        pytest.param(pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", UTC)])), {"a": "1", "b": None},
                     id="a struct"),
        pytest.param(pa.array([[{"t": 0}]], pa.list_(pa.struct([("t", pa.int32())])))
                     .cast(pa.list_(pa.struct([("t", pa.date32())]))), [{"t": "1970-01-01"}], id="nested"),
    ],
)  # fmt: skip
def test_a_value_has_the_form_of_its_type(values: pa.Array, shown: object) -> None:
    rows = json_rows(pa.table({"c": values}))
    assert rows == [(shown,)]
    assert json.loads(msgspec.json.encode(rows)) == [[shown]]


def test_rows_are_rows() -> None:
    assert json_rows(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", None]})) == [(1, "x"), (2, None)]


def test_as_many_rows_as_fit() -> None:
    table = pa.table({"a": ["x" * 100] * 50})
    assert rows_within(table, 10**6) == 50
    assert 0 < rows_within(table, 1000) < 10
    assert rows_within(table, 50) == 0
