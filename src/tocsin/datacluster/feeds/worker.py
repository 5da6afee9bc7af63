"""What Spark's Python workers run for a feed: raw input in, pieces out (see ``batches``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from tocsin.datacluster.feeds.batches import PIECE, Rejected, encode
from tocsin.datacluster.feeds.decode import UnreadableFile, decode_file, decode_lines
from tocsin.model.catalog import DatasetSpec

Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_LONGEST_RAW = 64 * 1024


def parse_files(dataset: DatasetSpec, form: str) -> Worker:
    """Rows of (at, source, content), one a file."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at, source, content in zip(*(batch.column(i) for i in range(3)), strict=True):
                yield from _file(at.as_py(), source.as_py(), content.as_py(), dataset, form)

    return work


def refuse_files(limit: int) -> Worker:
    """Rows of (at, source, length), one a file that is too large."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                reason = f"the file has {row['length']:,} bytes; at most {limit:,} are allowed (max_file_bytes)"
                yield _piece(row["at"], row["source"], 0, None, [("", f"{_path(row['source'])}: {reason}")])

    return work


def parse_messages(dataset: DatasetSpec) -> Worker:
    """Rows of (partition, offset, value), one a message, of one partition and in its order."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield _messages(batch, dataset)

    return work


def _file(at: int, source: str, content: bytes, dataset: DatasetSpec, form: str) -> Iterator[pa.RecordBatch]:
    number = 0
    try:
        for table, rejected in decode_file(source, content, dataset, form):
            yield _piece(at, source, number, table, rejected)
            number += 1
    except UnreadableFile as failure:
        yield _piece(at, source, number, None, [("", f"{_path(source)}: {failure}")])


def _messages(batch: pa.RecordBatch, dataset: DatasetSpec) -> pa.RecordBatch:
    partitions, offsets, values = (batch.column(i).to_pylist() for i in range(3))
    empty: Rejected = []
    lines: list[bytes] = []
    for offset, value in zip(offsets, values, strict=True):
        if value is None or not value.strip():
            empty.append(("", f"the message at partition {partitions[0]}, offset {offset} is empty"))
        else:
            lines.append(value.replace(b"\r", b" ").replace(b"\n", b" "))
    table, rejected = decode_lines(lines, dataset)
    return _piece(0, f"{partitions[0]:08d}", offsets[0], table, empty + rejected)


def _piece(at: int, source: str, start: int, table: pa.Table | None, rejected: Rejected) -> pa.RecordBatch:
    good = encode(table) if table is not None and table.num_rows else None
    raws, reasons = [_short(raw) for raw, _ in rejected], [reason for _, reason in rejected]
    return pa.record_batch([[at], [source], [start], [good], [raws], [reasons]], schema=PIECE)


def _short(raw: str) -> str:
    return raw if len(raw) <= _LONGEST_RAW else raw[:_LONGEST_RAW] + "…"


def _path(source: str) -> str:
    return unquote(urlsplit(source).path)
