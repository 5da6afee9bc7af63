"""What runs in Spark's Python workers: probe the indexes, write the matches, return counts.

The pairs never enter the JVM. A worker gets a partition of candidate rows as Arrow batches, probes
each channel's index, writes the matches of the whole partition as one factorised result file for
each channel, syncs it, and gives back one summary row a channel. A small result goes back in that row
and becomes part of the ledger's transaction: in a tick of many channels the syncs of their files cost
more than the matching. Workers are forked once and reused, so opened indexes stay mapped between ticks.

A file is named by execution and attempt; it becomes a result only when the driver's transaction names
it. A task that runs twice writes two files, and the driver takes the one that the job returned.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage.files import make_directory
from tocsin.datacluster.storage.resultfiles import RESULT_SCHEMA, result_batch, result_bytes
from tocsin.matching import warming
from tocsin.matching.collect import Matches
from tocsin.matching.records import Records
from tocsin.matching.refs import IndexRef, open_ref

SUMMARY_SQL = "channel INT, path STRING, rows BIGINT, pairs BIGINT, size BIGINT, backends BINARY, content BINARY"
SUMMARY = pa.schema(
    [
        ("channel", pa.int32()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("pairs", pa.int64()),
        ("size", pa.int64()),
        ("backends", pa.binary()),
        ("content", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Probe:
    """One channel's share of a pass.

    ``probes`` maps the index's probe names to columns of the pass; a row takes part where
    ``payload`` is not NULL. ``path_stem`` is where files go, or ``None`` to count only. Results of at
    most ``inline_bytes`` go back in the summary instead. Backend numbers are listed there while a
    partition's pairs number at most ``list_pairs``.
    """

    channel: int
    ref: IndexRef
    probes: tuple[tuple[str, str], ...]
    payload: str
    ordinal: str | None
    path_stem: str | None
    list_pairs: int
    inline_bytes: int


def match_partition(probes: tuple[Probe, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``mapInArrow`` body: candidate rows in, one summary a channel out."""
    found = summaries(probes, batches)
    if found:
        yield pa.RecordBatch.from_pylist(found, schema=SUMMARY)


def summaries(probes: tuple[Probe, ...], batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """What each channel found in ``batches``, as rows of ``SUMMARY``; none for one that considered nothing."""
    part = uuid.uuid4().hex[:8]
    writers = [_ChannelWriter(p, part) for p in probes]
    for batch in batches:
        records = Records(batch)
        for writer in writers:
            writer.add(batch, records)
    return [s for s in (w.finish() for w in writers) if s is not None]


def warm_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """``mapInArrow`` body that only makes a worker ready: modules imported, kernels loaded."""
    warming.warm_up()
    for _ in batches:
        yield pa.RecordBatch.from_pylist([], schema=SUMMARY)


class _ChannelWriter:
    """Collects one channel's matches of one partition."""

    def __init__(self, probe: Probe, part: str) -> None:
        """``part`` tells the files of this attempt at this partition from all others."""
        self._probe, self._stem = probe, f"{probe.path_stem}-{part}"
        self._index = open_ref(probe.ref)
        self._path: Path | None = None
        self._file: Any = None
        self._writer: Any = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._rows = self._pairs = self._considered = 0
        self._backends: list[np.ndarray[Any, Any]] = []

    def add(self, batch: pa.RecordBatch, records: Records) -> None:
        payload = batch.column(self._probe.payload)
        if payload.null_count == len(payload):
            return
        rows = payload.is_valid().to_numpy(zero_copy_only=False) if payload.null_count else None
        self._considered += batch.num_rows - payload.null_count
        matches = self._index.match(records, dict(self._probe.probes), rows)
        if len(matches.ids) == 0:
            return
        self._pairs += len(matches.ids)
        if self._pairs <= self._probe.list_pairs:
            self._backends.append(matches.ids)
        if self._probe.path_stem is not None:
            self._write(batch, matches)

    def _write(self, batch: pa.RecordBatch, matches: Matches) -> None:
        rows, offsets = batch, matches.offsets
        counts = np.diff(offsets)
        if not counts.all():
            kept = np.flatnonzero(counts)
            rows, offsets = batch.take(pa.array(kept)), np.concatenate(([0], np.cumsum(counts[kept])))
        self._rows += rows.num_rows
        ordinal = rows.column(self._probe.ordinal) if self._probe.ordinal else np.zeros(rows.num_rows, np.int32)
        out = result_batch(rows.column("__seq"), ordinal, rows.column(self._probe.payload), offsets, matches.ids)
        size = out.get_total_buffer_size()
        if self._writer is None and self._held_bytes + size <= self._probe.inline_bytes:
            self._held.append(out)
            self._held_bytes += size
        else:
            self._open().write_batch(out)

    def _open(self) -> Any:
        """The file, with what was held back for the summary in it."""
        if self._writer is None:
            self._path = Path(f"{self._stem}.arrow")
            make_directory(self._path.parent)
            self._file = self._path.open("wb")
            self._writer = pa.ipc.new_file(self._file, RESULT_SCHEMA)
            for batch in self._held:
                self._writer.write_batch(batch)
            self._held = []
        return self._writer

    def finish(self) -> dict[str, Any] | None:
        if self._considered == 0:
            return None
        content = result_bytes(self._held) if self._held else None
        path, size = self._stem, len(content or b"")
        if self._path is not None:
            path, size = str(self._path), self._close()
        listed = self._pairs <= self._probe.list_pairs
        return {
            "channel": self._probe.channel,
            "path": path if content or self._path else None,
            "rows": self._rows,
            "pairs": self._pairs,
            "size": size,
            "backends": np.concatenate(self._backends or [np.empty(0, np.uint32)]).tobytes() if listed else None,
            "content": content,
        }

    def _close(self) -> int:
        """Sync the file; its size."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        size = os.fstat(self._file.fileno()).st_size
        self._file.close()
        return size
