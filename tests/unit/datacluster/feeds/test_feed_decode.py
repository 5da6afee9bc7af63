from __future__ import annotations

import gzip
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.datacluster.feeds import decode
from tocsin.datacluster.feeds.decode import UnreadableFile, decode_file
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

SPEC = DatasetSpec(
    "d",
    (
        Column("id", SqlType("INT"), not_null=True),
        Column("name", SqlType("STRING")),
        Column("x", SqlType("DOUBLE")),
        Column("ok", SqlType("BOOLEAN")),
        Column("tags", SqlType("STRING", is_array=True)),
        Column("price", SqlType("DECIMAL", 6, 2)),
    ),
)


def read(content: bytes, form: str, name: str = "f") -> tuple[list[dict[str, object]], list[tuple[str, str]]]:
    """Records without their NULLs, and dead letters."""
    rows, rejected = [], []
    for table, bad in decode_file(name, content, SPEC, form):
        rows += [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
        rejected += bad
    return rows, rejected


def parquet(**columns: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("id,name\n1,a\n2,b\n", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], id="rows by name"),
        pytest.param("name,ID\na,1", [{"id": 1, "name": "a"}], id="any order, any case, no last line break"),
        pytest.param("\ufeffid\n1\n", [{"id": 1}], id="a byte order mark is skipped"),
        pytest.param("id,name\n1,\n", [{"id": 1}], id="an empty field is NULL"),
        pytest.param(
            'id,name\r\n1,"a,\r\n""b"""\r\n', [{"id": 1, "name": 'a,\r\n"b"'}], id="quotes, breaks and commas"
        ),
        pytest.param("id\n\n1\n\n", [{"id": 1}], id="blank rows are skipped"),
        pytest.param(
            'id,x,ok,tags,price\n1,2.5e3,TRUE,"[""a"",""b""]",12.5\n',
            [{"id": 1, "x": 2500.0, "ok": True, "tags": ["a", "b"], "price": Decimal("12.50")}],
            id="every type from its text",
        ),
        pytest.param("", [], id="an empty file has no records"),
    ],
)
def test_csv(text: str, expected: list[dict[str, object]]) -> None:
    assert read(text.encode(), "csv") == (expected, [])


@pytest.mark.parametrize(
    ("content", "raw", "reason"),
    [
        pytest.param(b"id,name\n1,a\n2\n", "2", "expected 2 fields", id="too few fields"),
        pytest.param(b"id,name\n1,a\n2,b,c\n", "2,b,c", "got 3", id="too many fields"),
        pytest.param(b"id,x\n1,1\n2,nan\n", "2,nan", "x", id="a number that is not one"),
        pytest.param(b"id,x\n1,1\n2,1_0\n", "2,1_0", "x", id="Python's own way to write numbers"),
        pytest.param(b"id,ok\n1,true\n2,maybe\n", "2,maybe", "ok", id="neither true nor false"),
        pytest.param(b"id,name\n1,a\n2,\xff\n", "2,\ufffd", "UTF-8", id="not UTF-8"),
        pytest.param(b"id,name\n1,a\n,b\n", ",b", "id", id="NULL where there must be a value"),
    ],
)
def test_a_csv_row_that_does_not_fit_is_kept_as_it_was(content: bytes, raw: str, reason: str) -> None:
    rows, rejected = read(content, "csv")
    assert [row["id"] for row in rows] == [1]
    assert [text for text, _ in rejected] == [raw]
    assert reason in rejected[0][1]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        pytest.param("id,ID", "names column 'ID' twice", id="named twice"),
        pytest.param("id,nmae,foo", "'d' has no columns 'nmae', 'foo'; did you mean 'name'", id="unknown"),
        pytest.param("id;name", "no column 'id;name'; expected some of id, name", id="another separator"),
        pytest.param("name,x", "lacks column 'id', which must not be NULL", id="one that is needed is missing"),
        pytest.param('"id"x', "not CSV", id="not CSV"),
    ],
)
def test_a_wrong_header_is_told_once_for_the_file(header: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        read(f"{header}\n1,2\n3,4\n".encode(), "csv")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(parquet(id=[1, 2]), [{"id": 1}, {"id": 2}], id="missing columns are NULL"),
        pytest.param(parquet(ID=pa.array([1], pa.int64())), [{"id": 1}], id="wider integers that fit"),
        pytest.param(parquet(id=[1], x=[None]), [{"id": 1}], id="a column of nothing"),
        pytest.param(parquet(id=[1], x=[2]), [{"id": 1, "x": 2.0}], id="an integer where a DOUBLE is declared"),
    ],
)
def test_parquet(content: bytes, expected: list[dict[str, object]]) -> None:
    assert read(content, "parquet") == (expected, [])


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(parquet(id=[1, 2**40]), id="an integer that is too large"),
        pytest.param(parquet(id=[1, None]), id="NULL where there must be a value"),
        pytest.param(parquet(id=[1, 2], x=[1.0, float("inf")]), id="an infinite number"),
    ],
)
def test_one_bad_value_in_parquet_costs_one_record(content: bytes) -> None:
    rows, rejected = read(content, "parquet")
    assert [row["id"] for row in rows] == [1]
    assert len(rejected) == 1


@pytest.mark.parametrize(
    ("name", "form"), [pytest.param("f", "parquet", id="Parquet"), pytest.param("f.gz", "json", id="gzip")]
)
def test_a_file_of_another_kind_is_unreadable(name: str, form: str) -> None:
    with pytest.raises(UnreadableFile, match="can be read"):
        read(b"something else", form, name)


@pytest.mark.parametrize("size", [1, 7, 30, 10_000])
def test_json_lines_are_cut_between_records_only(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "PIECE_BYTES", size)
    content = b"".join(b'{"id": %d}\n' % i for i in range(20)) + b'{"id": 20}'
    assert read(content, "json") == ([{"id": i} for i in range(21)], [])
    assert read(gzip.compress(content), "json", "f.gz") == ([{"id": i} for i in range(21)], [])
