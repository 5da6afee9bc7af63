"""From one micro-batch, as the workers parsed it, to appends and dead letters.

Workers return *pieces*: parsed records as an Arrow stream, and what did not fit. How Spark spread the
input over tasks depends on the cluster's size, so nothing here may depend on it: pieces are put in the
order of their source (file time and name, or partition and offset), joined, and cut every
``CHUNK_ROWS``. The same input thus gives the same chunks under the same keys on any cluster, which
is what lets the sink drop the ones it already has after a crash.

Dead letters go first: if a crash falls between the two and the dataset has gained a column since, a
record may then end up in both places, but never in neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

CHUNK_ROWS = 100_000  # part of the meaning of a key: changing it is safe only between batches

ORDER = ("at", "source", "start")
PIECE_SQL = "at bigint, source string, start bigint, good binary, raw array<string>, reason array<string>"
PIECE = pa.schema(
    [
        ("at", pa.int64()),
        ("source", pa.string()),
        ("start", pa.int64()),
        ("good", pa.binary()),
        ("raw", pa.list_(pa.string())),
        ("reason", pa.list_(pa.string())),
    ]
)

Rejected = list[tuple[str, str]]


class Sink(Protocol):
    """Where a feed's records go. Both return only when all is durable, and do nothing for a known key."""

    def append(self, table: pa.Table, key: str) -> None: ...

    def reject(self, raw_lines: Rejected, key: str) -> None:
        """Keep dead letters: the raw text of each, and the reason."""
        ...


@dataclass(frozen=True, slots=True)
class Delivered:
    records: int
    rejected: int


def deliver(pieces: pa.Table, key: str, sink: Sink) -> Delivered:
    """Give one batch to the sink, in an order that depends on its content only."""
    ordered = pieces.sort_by([(name, "ascending") for name in ORDER])
    rejected = list(_rejected(ordered))
    for number, letters in enumerate(_cut(rejected)):
        sink.reject(letters, f"{key}/rejected/{number}")
    table = _joined(ordered)
    for number, start in enumerate(range(0, table.num_rows, CHUNK_ROWS)):
        sink.append(table.slice(start, CHUNK_ROWS), f"{key}/{number}")
    return Delivered(table.num_rows, len(rejected))


def encode(table: pa.Table) -> bytes:
    """A table as one Arrow stream."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _joined(pieces: pa.Table) -> pa.Table:
    tables = [pa.ipc.open_stream(good.as_buffer()).read_all() for good in pieces["good"] if good.is_valid]
    return pa.concat_tables(tables).combine_chunks() if tables else pa.table({})


def _rejected(pieces: pa.Table) -> Iterable[tuple[str, str]]:
    for raws, reasons in zip(pieces["raw"].to_pylist(), pieces["reason"].to_pylist(), strict=True):
        yield from zip(raws or (), reasons or (), strict=True)


def _cut(letters: Rejected) -> Iterator[Rejected]:
    for start in range(0, len(letters), CHUNK_ROWS):
        yield letters[start : start + CHUNK_ROWS]
