"""What runs in Spark's Python workers: probe the indexes, write the matches, return counts.

The pairs never enter the JVM. A worker gets a partition of candidate rows as Arrow batches, probes
each channel's index, writes the matches of the whole partition as one factorised result file for
each channel, syncs it, and gives back one summary row a channel. Workers are forked once and reused,
so opened indexes stay mapped between ticks.

A file is named by execution and attempt; it becomes a result only when the driver's transaction names
it. A task that runs twice writes two files, and the driver takes the one that the job returned.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage.results import RESULT_SCHEMA
from tocsin.matching.collect import Matches
from tocsin.matching.refs import IndexRef, open_ref

SUMMARY_SQL = "channel INT, path STRING, rows BIGINT, pairs BIGINT, size BIGINT, considered BIGINT, backends BINARY"
SUMMARY = pa.schema(
    [
        ("channel", pa.int32()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("pairs", pa.int64()),
        ("size", pa.int64()),
        ("considered", pa.int64()),
        ("backends", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Probe:
    """One channel's share of a pass.

    ``probes`` maps the index's probe names to columns of the pass; a row takes part where
    ``payload`` is not NULL. ``path_stem`` is where files go, or ``None`` to count only. Backend
    numbers are listed in the summary while a partition's pairs number at most ``list_pairs``.
    """

    channel: int
    ref: IndexRef
    probes: tuple[tuple[str, str], ...]
    payload: str
    ordinal: str | None
    path_stem: str | None
    list_pairs: int


def match_partition(probes: tuple[Probe, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``mapInArrow`` body: candidate rows in, one summary a channel out."""
    writers = [_ChannelWriter(p) for p in probes]
    for batch in batches:
        for writer in writers:
            writer.add(batch)
    summaries = [s for s in (w.finish() for w in writers) if s is not None]
    if summaries:
        yield pa.RecordBatch.from_pylist(summaries, schema=SUMMARY)


class _ChannelWriter:
    """Collects one channel's matches of one partition."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._index = open_ref(probe.ref)
        self._path: Path | None = None
        self._file: Any = None
        self._writer: Any = None
        self._rows = self._pairs = self._considered = 0
        self._backends: list[np.ndarray[Any, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        payload = batch.column(self._probe.payload)
        if payload.null_count == len(payload):
            return
        if payload.null_count:
            batch = batch.filter(payload.is_valid())
        self._considered += batch.num_rows
        columns = {name: batch.column(column) for name, column in self._probe.probes}
        table = pa.table(columns) if columns else batch.select([self._probe.payload])
        matches = self._index.probe(table)
        if len(matches.ids) == 0:
            return
        self._pairs += len(matches.ids)
        if self._pairs <= self._probe.list_pairs:
            self._backends.append(matches.ids)
        if self._probe.path_stem is not None:
            self._write(batch, matches)

    def _write(self, batch: pa.RecordBatch, matches: Matches) -> None:
        counts = np.diff(matches.offsets)
        kept = np.flatnonzero(counts)
        offsets = np.concatenate(([0], np.cumsum(counts[kept])))
        rows = batch.take(pa.array(kept)) if len(kept) < batch.num_rows else batch
        self._rows += rows.num_rows
        ordinal = (
            rows.column(self._probe.ordinal).cast(pa.int32())
            if self._probe.ordinal
            else pa.array(np.zeros(rows.num_rows, np.int32))
        )
        out = pa.RecordBatch.from_arrays(
            [
                rows.column("__seq"),
                ordinal,
                rows.column(self._probe.payload).cast(pa.large_binary()),
                pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(matches.ids, pa.uint32())),
            ],
            schema=RESULT_SCHEMA,
        )
        self._open().write_batch(out)

    def _open(self) -> Any:
        if self._writer is None:
            self._path = Path(f"{self._probe.path_stem}-{uuid.uuid4().hex[:8]}.arrow")
            self._file = self._path.open("wb")
            self._writer = pa.ipc.new_file(self._file, RESULT_SCHEMA)
        return self._writer

    def finish(self) -> dict[str, Any] | None:
        if self._considered == 0:
            return None
        size = 0
        if self._path is not None:
            self._writer.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            size = os.fstat(self._file.fileno()).st_size
            self._file.close()
        listed = self._pairs <= self._probe.list_pairs
        return {
            "channel": self._probe.channel,
            "path": str(self._path) if self._path else None,
            "rows": self._rows,
            "pairs": self._pairs,
            "size": size,
            "considered": self._considered,
            "backends": np.concatenate(self._backends or [np.empty(0, np.uint32)]).tobytes() if listed else None,
        }
