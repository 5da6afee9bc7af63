from __future__ import annotations

from tocsin.datacluster.storage.parse_csv import parse_csv
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

PLACES = DatasetSpec(
    "Places", (Column("id", SqlType("INT")), Column("x", SqlType("DOUBLE")), Column("t", SqlType("STRING")))
)


def test_a_field_may_be_as_long_as_a_record() -> None:
    long = "7,7,seven\n" * 20_000
    table, bad = parse_csv(f'id,x,t\n1,2.5,"{long}"\n2,1,b\n'.encode(), PLACES)
    assert table.to_pylist() == [{"id": 1, "x": 2.5, "t": long}, {"id": 2, "x": 1.0, "t": "b"}]
    assert bad == []


def test_a_number_out_of_range_is_refused_for_what_it_is() -> None:
    table, (bad,) = parse_csv(b"id,x\n1,1e999\n2,1e300\n", PLACES)
    assert table.column("id").to_pylist() == [2]
    assert (bad.line_no, bad.raw) == (2, "1,1e999")
    assert "x: expected DOUBLE, a finite number" in bad.reason
