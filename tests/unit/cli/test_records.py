import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.records import _grouped, batches, convert, format_of, opened
from tocsin.errors import BadArgument

COLUMNS = {"id": "BIGINT", "x": "DOUBLE", "ok": "BOOLEAN", "tags": "ARRAY<STRING>", "name": "STRING"}


def read(path, form=None, limit=10**6):
    with opened(path) as source:
        found = list(batches(source, form or format_of(path, None), COLUMNS, limit))
    return [json.loads(line) for batch in found for line in batch.lines.splitlines()]


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.jsonl", "jsonl"), ("a.NDJSON", "jsonl"), ("a.csv.gz", "csv"), ("a.parquet", "parquet"), ("-", "jsonl")],
)
def test_the_name_tells_the_format(name, form):
    assert format_of(Path(name), None) == form


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(BadArgument, match="jsonl, csv, parquet"):
        format_of(Path("a.csv"), "cvs")
    with pytest.raises(BadArgument, match=r"\.jsonl"):
        format_of(Path("a.xlsx"), None)


def test_json_lines_pass_untouched_without_blank_ones(tmp_path):
    path = written(tmp_path, "a.jsonl", b'{"id": 1}\n\n  \n{"id":2}')
    with opened(path) as source:
        (batch,) = batches(source, "jsonl", COLUMNS, 1000)
    assert (batch.lines, batch.records) == (b'{"id": 1}\n{"id":2}\n', 2)


def test_compressed_files_are_read(tmp_path):
    assert read(written(tmp_path, "a.jsonl.gz", gzip.compress(b'{"id": 1}\n'))) == [{"id": 1}]


def test_a_cut_off_compressed_file_is_told(tmp_path):
    path = written(tmp_path, "a.jsonl.gz", gzip.compress(b'{"id": 1}\n' * 1000)[:-20])
    with pytest.raises(BadArgument, match="a whole gzip file"):
        read(path)


def test_csv_is_converted_by_the_types_of_the_columns(tmp_path):
    content = '\ufeffid,x,OK,tags,name\n7,1.5,true,"[""a""]","say ""hi"", Ann"\n8,,,,\n'
    assert read(written(tmp_path, "a.csv", content.encode())) == [
        {"id": "7", "x": 1.5, "OK": True, "tags": ["a"], "name": 'say "hi", Ann'},
        {"id": "8", "x": None, "OK": None, "tags": None, "name": None},
    ]


def test_a_csv_row_with_too_many_values_is_told(tmp_path):
    with pytest.raises(BadArgument, match="as many values as the header"):
        read(written(tmp_path, "a.csv", b"id\n1,2\n"))


def test_a_file_that_is_not_utf8_is_told(tmp_path):
    with pytest.raises(BadArgument, match="UTF-8"):
        read(written(tmp_path, "a.csv", b"name\n\xff\xfe\n"))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        pytest.param("x", "DOUBLE", "x", id="what does not convert stays a text"),
        pytest.param("maybe", "BOOLEAN", "maybe", id="a word that is no flag"),
        pytest.param("[1", "ARRAY<INT>", "[1", id="a list that is not closed"),
        pytest.param("9007199254740993", "BIGINT", "9007199254740993", id="a large integer keeps its digits"),
        pytest.param("1.10", "DECIMAL(9, 2)", "1.10", id="a decimal keeps its digits"),
    ],
)
def test_convert(value, kind, expected):
    assert convert(value, kind) == expected


def test_parquet_is_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), path)
    assert read(path) == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_what_is_no_parquet_is_told(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(BadArgument, match="expected Parquet"):
        read(written(tmp_path, "a.parquet", b"hello"))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(BadArgument, match="No such file"):
        read(tmp_path / "none.jsonl")


@given(st.lists(st.binary(min_size=1, max_size=30)), st.integers(1, 60))
def test_batches_keep_every_line_in_order_and_stay_within_the_limit(lines, limit):
    found = list(_grouped(iter(lines), limit))
    assert b"".join(b.lines for b in found) == b"".join(lines)
    assert sum(b.records for b in found) == len(lines)
    assert all(len(b.lines) <= limit or b.records == 1 for b in found)
