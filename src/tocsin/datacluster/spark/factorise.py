"""From pairs to factorised results: a payload once, with everyone who gets it.

The join strategy gives one row a (backend subscription, notification). Where the payload does not
depend on the parameters, the same text comes back for many subscriptions; it is stored once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Factorised:
    """Row ``i`` goes to ``ids[offsets[i]:offsets[i + 1]]``; rows are ordered by (seq, ord, payload)."""

    seq: npt.NDArray[np.int64]
    ord: npt.NDArray[np.int32]
    payload: pa.Array
    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]


def factorise(rows: pa.Table) -> Factorised:
    """Group a table of ``bs, seq, ord, payload`` by notification."""
    seq = rows.column("seq").to_numpy()
    rank = rows.column("ord").to_numpy()
    ids = rows.column("bs").to_numpy().astype(np.uint32)
    encoded: Any = rows.column("payload").combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    texts, codes = encoded.dictionary, np.asarray(encoded.indices)
    place = np.empty(len(texts), np.int64)  # codes follow arrival, which Spark does not promise: rank by text
    place[np.argsort(np.asarray(texts.to_pylist(), dtype=object))] = np.arange(len(texts))
    ranked = place[codes] if len(codes) else np.empty(0, np.int64)
    order = np.lexsort((ids, ranked, rank, seq))
    first = _starts(seq[order], rank[order], ranked[order])
    chosen = order[first]
    return Factorised(
        seq[chosen],
        rank[chosen].astype(np.int32),
        texts.take(pa.array(codes[chosen])).cast(pa.large_binary()),
        np.append(first, len(order)).astype(np.int64),
        ids[order],
    )


def _starts(*keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if len(keys[0]) == 0:
        return np.empty(0, np.int64)
    changed = np.ones(len(keys[0]), bool)
    changed[1:] = False
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changed)
