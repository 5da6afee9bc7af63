"""A file's records as batches of JSON lines.

JSON lines pass through untouched. CSV has a header line; a value is converted by the type of its
column, an empty one is null, and one that does not convert is sent as the text it is, for the cluster
to refuse with its reason. Parquet needs PyArrow, which the ``cluster`` extra brings.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from tocsin.cli.extras import needs
from tocsin.errors import BadArgument, nearest

FORMATS = ("jsonl", "csv", "parquet")
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
_PARQUET_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Batch:
    lines: bytes
    records: int


@dataclass(frozen=True, slots=True)
class Source:
    """An open file; ``raw`` is what lies on disk, ``data`` the same without compression."""

    raw: BinaryIO
    data: BinaryIO
    size_bytes: int | None

    def position(self) -> int | None:
        return self.raw.tell() if self.size_bytes is not None else None


def format_of(file: Path, asked: str | None) -> str:
    """The format asked for, or the one the name tells."""
    if asked is not None:
        if asked not in FORMATS:
            raise BadArgument("--format", f"one of {', '.join(FORMATS)}{nearest(asked, FORMATS)}", asked)
        return asked
    if file == Path("-"):
        return "jsonl"
    suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
    if suffix.lower() not in _SUFFIXES:
        raise BadArgument("FILE", f"a name that ends in {', '.join(_SUFFIXES)} (or .gz), or --format", str(file))
    return _SUFFIXES[suffix.lower()]


@contextmanager
def opened(file: Path) -> Iterator[Source]:
    if file == Path("-"):
        yield Source(sys.stdin.buffer, sys.stdin.buffer, None)
        return
    try:
        raw = file.open("rb")
    except OSError as error:
        raise BadArgument("FILE", "a file that can be read", f"{file}: {error.strerror}") from None
    with raw:
        data = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if file.suffix == ".gz" else raw
        yield Source(raw, data, file.stat().st_size)


def batches(source: Source, form: str, columns: dict[str, str], limit: int) -> Iterator[Batch]:
    """Batches of at most ``limit`` bytes, or of one record where that is longer."""
    readers: dict[str, Callable[[], Iterator[bytes]]] = {
        "jsonl": lambda: _json_lines(source.data),
        "csv": lambda: _csv_lines(source.data, columns),
        "parquet": lambda: _parquet_lines(source.data),
    }
    try:
        yield from _grouped(readers[form](), limit)
    except (gzip.BadGzipFile, EOFError) as error:
        raise BadArgument("FILE", "a whole gzip file", str(error)) from None


def _grouped(lines: Iterator[bytes], limit: int) -> Iterator[Batch]:
    held: list[bytes] = []
    size = 0
    for line in lines:
        if held and size + len(line) > limit:
            yield Batch(b"".join(held), len(held))
            held, size = [], 0
        held.append(line)
        size += len(line)
    if held:
        yield Batch(b"".join(held), len(held))


def _json_lines(data: BinaryIO) -> Iterator[bytes]:
    for line in data:
        if line.strip():
            yield line if line.endswith(b"\n") else line + b"\n"


def _csv_lines(data: BinaryIO, columns: dict[str, str]) -> Iterator[bytes]:
    text = io.TextIOWrapper(data, encoding="utf-8-sig", newline="")
    types = {name.casefold(): kind for name, kind in columns.items()}
    try:
        for row in csv.DictReader(text, strict=True):
            if None in row:
                raise BadArgument("FILE", "as many values as the header has names", row[None])
            yield _line({name: convert(value, types.get(name.casefold(), "")) for name, value in row.items()})
    except (csv.Error, UnicodeDecodeError) as error:
        raise BadArgument("FILE", "CSV in UTF-8 with a header line", str(error)) from None
    finally:
        text.detach()  # or its end would close the file, which is not ours


def _parquet_lines(data: BinaryIO) -> Iterator[bytes]:
    with needs("cluster"):
        import pyarrow
        import pyarrow.parquet as parquet
    try:
        for rows in parquet.ParquetFile(data).iter_batches(_PARQUET_ROWS):
            yield from map(_line, rows.to_pylist())
    except pyarrow.ArrowException as error:
        raise BadArgument("FILE", "Parquet", str(error)) from None


def convert(value: str | None, kind: str) -> Any:
    """A CSV value as JSON has it for a column of this type."""
    if value is None or value == "":
        return None
    try:
        if kind == "DOUBLE":
            return float(value)
        if kind == "BOOLEAN":
            return {"true": True, "false": False, "1": True, "0": False}[value.strip().lower()]
        if kind.startswith("ARRAY"):
            return msgspec.json.decode(value)
    except (ValueError, KeyError, msgspec.DecodeError):
        pass
    return value


def _line(record: dict[str, Any]) -> bytes:
    return msgspec.json.encode(record) + b"\n"
