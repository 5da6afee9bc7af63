import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.records import Piece, _grouped, batches, format_of, opened
from tocsin.errors import BadArgument


def cut(path, limit=10**6):
    with opened(path) as source:
        return list(batches(source, format_of(path, None), limit))


def read(path):
    return [json.loads(line) for batch in cut(path) for line in batch.body.splitlines()]


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


def test_the_name_that_statements_have_for_json_lines_is_taken():
    assert format_of(Path("a.txt"), "json") == format_of(Path("a.txt"), "jsonl") == "jsonl"


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(BadArgument, match="jsonl, json, csv, parquet"):
        format_of(Path("a.csv"), "cvs")
    with pytest.raises(BadArgument, match=r"\.jsonl"):
        format_of(Path("a.xlsx"), None)


def test_json_lines_pass_untouched(tmp_path):
    (batch,) = cut(written(tmp_path, "a.jsonl", b'{"id": 1}\n\n  \n{"id":2}'))
    assert (batch.body, batch.records, batch.line(4)) == (b'{"id": 1}\n\n  \n{"id":2}\n', 2, 4)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_file_without_records_makes_no_batch(tmp_path, content):
    assert cut(written(tmp_path, "a.jsonl", content)) == cut(written(tmp_path, "a.csv", b"id,x\n" + content)) == []
    assert cut(written(tmp_path, "b.csv", content)) == []


def test_compressed_files_are_read(tmp_path):
    assert read(written(tmp_path, "a.jsonl.gz", gzip.compress(b'{"id": 1}\n'))) == [{"id": 1}]


def test_a_cut_off_compressed_file_is_told(tmp_path):
    path = written(tmp_path, "a.jsonl.gz", gzip.compress(b'{"id": 1}\n' * 1000)[:-20])
    with pytest.raises(BadArgument, match="a whole gzip file"):
        read(path)


def test_each_batch_of_a_csv_has_the_header_and_whole_rows(tmp_path):
    content = '\ufeffid,name\r\n1,"a\n\nb"\r\n\r\n2,c,too many\r\n3'.encode()
    first, second, third = cut(written(tmp_path, "a.csv", content), limit=22)
    assert first.body == b'id,name\r\n1,"a\n\nb"\r\n\r\n'
    assert (second.body, second.line(2)) == (b"id,name\r\n2,c,too many\r\n", 6)
    assert (third.body, third.line(2)) == (b"id,name\r\n3\n", 7)
    assert [batch.records for batch in (first, second, third)] == [1, 1, 1]


@pytest.mark.parametrize("row", [b'"a"b,1', b"\xff\xfe,1"])
def test_a_row_that_is_not_csv_or_not_utf8_is_sent_as_it_is(tmp_path, row):
    (batch,) = cut(written(tmp_path, "a.csv", b"name,x\n" + row + b"\nb,2\n"))
    assert (batch.body, batch.records) == (b"name,x\n" + row + b"\nb,2\n", 2)


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
    found = list(_grouped((Piece(b"x" + line) for line in lines), limit))
    assert b"".join(b.body for b in found) == b"".join(b"x" + line for line in lines)
    assert sum(b.records for b in found) == len(lines)
    assert all(len(b.body) <= limit or b.records == 1 for b in found)
    assert [b.line(1) for b in found] == [1 + sum(b.records for b in found[:n]) for n in range(len(found))]


def test_a_long_field_is_not_cut(tmp_path):
    long = b'1,"' + b"7,7\n" * 50_000 + b'"\n'
    first, second = cut(written(tmp_path, "a.csv", b"id,t\n" + long + b"2,b\n"), limit=1000)
    assert (first.body, second.body) == (b"id,t\n" + long, b"id,t\n2,b\n")
