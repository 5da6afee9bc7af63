"""A file's records as batches to send.

JSON lines and CSV pass through untouched, cut between records only; each batch of a CSV begins with the
header. What they mean is the cluster's business, so that a file means the same to a load and to a feed.
Parquet becomes JSON lines here and needs PyArrow, which the ``cluster`` extra brings.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec

from tocsin.cli.extras import needs
from tocsin.errors import BadArgument, nearest

FORMATS = ("jsonl", "json", "csv", "parquet")
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
_PARQUET_ROWS = 10_000
_BATCH_RECORDS = 20_000  # the cluster has a limit, too
_LONGEST_FIELD = 64 << 20  # of a quote that is never closed, no more is taken for one field


class Piece(NamedTuple):
    """What must not be cut; ``lines`` long, and no record where it is blank."""

    text: bytes
    lines: int = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """``first_line`` is where its records begin in the file, ``header_lines`` how many stand before them here."""

    body: bytes
    records: int
    first_line: int
    header_lines: int

    def line(self, of_body: int) -> int:
        """The line of the file that is this line of the body."""
        return max(1, self.first_line + of_body - 1 - self.header_lines)


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
        return "jsonl" if asked == "json" else asked
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
        raise BadArgument("FILE", "a file that can be read", str(file), because=error.strerror or "") from None
    with raw:
        data = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if file.suffix == ".gz" else raw
        yield Source(raw, data, file.stat().st_size)


def batches(source: Source, form: str, limit: int) -> Iterator[Batch]:
    """Batches of at most ``limit`` bytes, or of one record where that is longer, and never of very many records."""
    readers: dict[str, Callable[[BinaryIO], Iterator[Piece]]] = {
        "jsonl": _json_lines,
        "csv": _csv_rows,
        "parquet": _parquet_lines,
    }
    try:
        yield from _grouped(readers[form](source.data), limit, has_header=form == "csv")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadArgument("FILE", "a whole gzip file", because=str(error)) from None


def _grouped(pieces: Iterator[Piece], limit: int, *, has_header: bool = False) -> Iterator[Batch]:
    header = next((one for one in pieces if one.text.strip()), Piece(b"", 0)) if has_header else Piece(b"", 0)
    held, size, lines = [header], len(header.text), header.lines
    for piece in pieces:
        if len(held) > 1 and (size + len(piece.text) > limit or len(held) > _BATCH_RECORDS):
            yield from _batch(held, lines)
            held, size, lines = [header], len(header.text), lines + sum(one.lines for one in held[1:])
        held.append(piece)
        size += len(piece.text)
    yield from _batch(held, lines)


def _batch(held: list[Piece], lines_before: int) -> Iterator[Batch]:
    """One batch, or none where there is nothing but blank lines."""
    header, *pieces = held
    records = sum(bool(one.text.strip()) for one in pieces)
    if records:
        yield Batch(b"".join(one.text for one in held), records, lines_before + 1, header.lines)


def _json_lines(data: BinaryIO) -> Iterator[Piece]:
    for line in data:
        yield Piece(line if line.endswith(b"\n") else line + b"\n")


def _csv_rows(data: BinaryIO) -> Iterator[Piece]:
    """Rows as they are in the file, one that is not CSV too; only where they end is read."""
    csv.field_size_limit(_LONGEST_FIELD)
    text = io.TextIOWrapper(data, encoding="utf-8-sig", errors="surrogateescape", newline="")
    tape: list[str] = []
    reader = csv.reader(_recorded(text, tape), strict=True)
    try:
        while True:
            tape.clear()
            with suppress(csv.Error):  # for the cluster to refuse, with its reason
                if next(reader, None) is None:
                    return
            row = "".join(tape)
            ended = row if row.endswith(("\n", "\r")) else row + "\n"
            yield Piece(ended.encode("utf-8", "surrogateescape"), len(tape))
    finally:
        text.detach()  # or its end would close the file, which is not ours


def _recorded(lines: Iterable[str], tape: list[str]) -> Iterator[str]:
    for line in lines:
        tape.append(line)
        yield line


def _parquet_lines(data: BinaryIO) -> Iterator[Piece]:
    with needs("cluster"):
        import pyarrow
        import pyarrow.parquet as parquet
    try:
        for rows in parquet.ParquetFile(data).iter_batches(_PARQUET_ROWS):
            yield from (Piece(_line(row)) for row in rows.to_pylist())
    except pyarrow.ArrowException as error:
        raise BadArgument("FILE", "Parquet", because=str(error)) from None


def _line(record: dict[str, Any]) -> bytes:
    return msgspec.json.encode(record) + b"\n"
