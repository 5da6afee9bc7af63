"""Result files: what an execution found, factorised.

An Arrow file with one row a payload: the driving record's sequence number, the ordinal, the payload
as JSON bytes, and every backend subscription that gets it. A payload that many share is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage import faults
from tocsin.datacluster.storage.executions import ResultFile
from tocsin.datacluster.storage.files import make_directory, write_atomically
from tocsin.errors import Corrupt

RESULT_SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64()),
        pa.field("ord", pa.int32()),
        pa.field("payload", pa.large_binary()),
        pa.field("backends", pa.large_list(pa.uint32())),
    ]
)

Numbers = np.ndarray[Any, np.dtype[Any]]
_DAMAGED = (pa.ArrowInvalid, pa.ArrowSerializationError, pa.ArrowNotImplementedError, pa.ArrowIndexError, OSError)


def result_path(root: Path, channel_id: int, execution_no: int, attempt: int, part: str) -> Path:
    """Where a part of an execution's results belongs."""
    return root / str(channel_id) / f"{execution_no:012x}-{attempt}-{part}.arrow"


def result_batch(
    seq: Any,
    ord: Any,
    payload: pa.Array | pa.ChunkedArray | Sequence[bytes],
    offsets: Numbers,
    ids: Numbers,
) -> pa.RecordBatch:
    """Rows in the form of a result file; row ``i`` goes to ``ids[offsets[i]:offsets[i + 1]]``."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array(seq, pa.int64()),
            pa.array(ord, pa.int32()),
            _binary(payload),
            pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(ids, pa.uint32())),
        ],
        schema=RESULT_SCHEMA,
    )


def result_bytes(batches: Sequence[pa.RecordBatch]) -> bytes:
    """A result file's content, for one that is kept in the ledger."""
    sink = pa.BufferOutputStream()
    _write_batches(sink, batches)
    return bytes(sink.getvalue())


def write_result_file(
    path: Path,
    seq: Any,
    ord: Any,
    payload: pa.Array | pa.ChunkedArray | Sequence[bytes],
    offsets: Numbers,
    ids: Numbers,
) -> ResultFile:
    """Write rows durably."""
    batch = result_batch(seq, ord, payload, offsets, ids)
    make_directory(path.parent)
    faults.point("result.before-write")
    size = write_atomically(
        path, lambda file: _write_batches(file, [batch]), "result.before-rename", "result.after-rename"
    )
    return ResultFile(str(path), batch.num_rows, len(ids), size)


def _write_batches(sink: Any, batches: Sequence[pa.RecordBatch]) -> None:
    with pa.ipc.new_file(sink, RESULT_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)


class ResultRows:
    """The rows of one execution over all its files, ordered by (seq, ord, first backend subscription)."""

    def __init__(self, sources: Sequence[Path | bytes]) -> None:
        """``sources`` are files, or the contents of those that are kept in the ledger."""
        self._batches = [batch for source in sources for batch in _batches(source)]
        self._lists = [_lists(batch) for batch in self._batches]
        counts = [batch.num_rows for batch in self._batches]
        self._batch = np.repeat(np.arange(len(counts)), counts)
        self._row = np.concatenate([np.arange(count) for count in counts] or [np.empty(0, np.int64)])
        seq, ord = self._joined("seq"), self._joined("ord")
        order = np.lexsort((self._firsts(), ord, seq))
        self._batch, self._row, self.seq, self.ord = self._batch[order], self._row[order], seq[order], ord[order]

    def __len__(self) -> int:
        return len(self.seq)

    def payload(self, index: int) -> bytes:
        value: bytes = self._batches[self._batch[index]].column(2)[int(self._row[index])].as_py()
        return value

    def backends(self, start: int, end: int) -> tuple[Numbers, Numbers]:
        """For rows ``start`` to ``end``: offsets and the ids one after another."""
        batch, row = self._batch[start:end], self._row[start:end]
        lengths = np.zeros(end - start, np.int64)
        for number in np.unique(batch):
            offsets, _ = self._lists[number]
            here = batch == number
            lengths[here] = offsets[row[here] + 1] - offsets[row[here]]
        places = np.concatenate(([0], np.cumsum(lengths)))
        ids = np.empty(places[-1], np.uint32)
        for number in np.unique(batch):
            offsets, values = self._lists[number]
            here = np.flatnonzero(batch == number)
            ids[_spans(places[here], lengths[here])] = values[_spans(offsets[row[here]], lengths[here])]
        return places, ids

    def pairs(self, start: int) -> Numbers:
        """How many backend subscriptions the rows from ``start`` on have together, row by row."""
        totals = np.zeros(len(self) - start, np.int64)
        for number, (offsets, _) in enumerate(self._lists):
            here = self._batch[start:] == number
            row = self._row[start:][here]
            totals[here] = offsets[row + 1] - offsets[row]
        return np.cumsum(totals)

    def _joined(self, name: str) -> Numbers:
        arrays = [batch.column(name).to_numpy(zero_copy_only=False) for batch in self._batches]
        return np.concatenate(arrays) if arrays else np.empty(0, np.int64)

    def _firsts(self) -> Numbers:
        """The first backend subscription of each row: rows of one record may differ only in that."""
        firsts = []
        for offsets, values in self._lists:
            first = np.zeros(len(offsets) - 1, np.int64)
            filled = offsets[1:] > offsets[:-1]
            first[filled] = values[offsets[:-1][filled]]
            firsts.append(first)
        return np.concatenate(firsts) if firsts else np.empty(0, np.int64)


def _spans(starts: Numbers, lengths: Numbers) -> Numbers:
    """The indices of many ranges, one after another."""
    if len(starts) == 1:
        return np.arange(starts[0], starts[0] + lengths[0])
    ends = np.cumsum(lengths)
    indices: Numbers = np.repeat(starts - (ends - lengths), lengths)
    indices += np.arange(len(indices))
    return indices


def _batches(source: Path | bytes) -> list[pa.RecordBatch]:
    try:
        reader = pa.ipc.open_file(pa.py_buffer(source) if isinstance(source, bytes) else pa.memory_map(str(source)))
        if reader.schema != RESULT_SCHEMA:
            raise pa.ArrowInvalid(f"expected the columns {RESULT_SCHEMA.names}, got {reader.schema.names}")
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        for batch in batches:
            batch.validate(full=True)  # its offsets stay within the file
        return batches
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the system's word, not Arrow's
        name = "a result in the ledger" if isinstance(source, bytes) else source
        raise Corrupt(f"{name} does not verify: {error}") from error


def _lists(batch: pa.RecordBatch) -> tuple[Numbers, Numbers]:
    column = batch.column(3)
    return column.offsets.to_numpy(), column.values.to_numpy()


def _binary(payload: Any) -> pa.Array:
    if isinstance(payload, pa.ChunkedArray):
        payload = payload.combine_chunks()
    if isinstance(payload, pa.Array):
        is_large = pa.types.is_large_string(payload.type)
        return payload.view(pa.large_binary()) if is_large else payload.cast(pa.large_binary())
    return pa.array(payload, pa.large_binary())
