"""A persisted base: an index together with the parameter sets that it was built from, by ascending id."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.errors import Corrupt
from tocsin.matching.build import index_contents
from tocsin.matching.fingerprint import Seed
from tocsin.matching.index import Index, open_index
from tocsin.matching.pending import bare, take
from tocsin.matching.spec import IndexSpec
from tocsin.matching.storage import read_meta, write_directory

_PARAMS = "params.arrow"

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Base:
    """``serial`` grows from one base to the next; ``watermark`` is the caller's."""

    directory: Path
    index: Index
    serial: int
    watermark: int

    def contains(self, ids: Ids) -> NDArray[np.bool_]:
        known = self.index.ids
        if known.size == 0:
            return np.zeros(ids.size, np.bool_)
        at = np.minimum(np.searchsorted(known, ids), known.size - 1)
        found: NDArray[np.bool_] = known[at] == ids
        return found

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Where the ids, which are in the base, stand in it."""
        return np.searchsorted(self.index.ids, ids).astype(np.int64)

    def params(self) -> pa.Table:
        table = pa.ipc.open_file(pa.memory_map(str(self.directory / _PARAMS))).read_all()
        return table if table.num_columns else bare(self.index.count)

    def without(self, removed: set[int]) -> tuple[Ids, pa.Table]:
        """What is left of the ids and the parameters."""
        kept = np.flatnonzero(~np.isin(self.index.ids, np.fromiter(removed, np.uint32, len(removed))))
        return self.index.ids[kept], take(self.params(), kept)


def write_base(
    directory: Path, spec: IndexSpec, ids: Ids, params: pa.Table, seed: Seed, serial: int, watermark: int
) -> Base:
    arrays, meta = index_contents(spec, {n: params.column(n) for n in params.column_names}, ids, seed)
    meta |= {"serial": serial, "watermark": watermark}
    write_directory(directory, arrays, meta, {_PARAMS: lambda path: _write_params(path, params)}, is_durable=True)
    return Base(directory, open_index(directory), serial, watermark)


def _write_params(path: Path, params: pa.Table) -> None:
    with pa.ipc.new_file(str(path), params.schema) as writer:
        writer.write_table(params)


def open_base(directory: Path, spec: IndexSpec) -> Base:
    """Corrupt where it is not whole or not of this spec."""
    meta = read_meta(directory)
    index = open_index(directory)
    if index.spec != spec or _PARAMS not in meta["files"]:
        raise Corrupt(f"base {directory} is of another specification; it will be built anew")
    return Base(directory, index, meta["serial"], meta["watermark"])


def newest_base(directory: Path, spec: IndexSpec) -> Base | None:
    """The newest whole base of the directory; drafts of unfinished ones are deleted."""
    for draft in directory.glob(".*.draft"):
        shutil.rmtree(draft, ignore_errors=True)
    bases = []
    for path in directory.glob("base-*"):
        try:
            bases.append(open_base(path, spec))
        except Corrupt:
            continue
    return max(bases, key=lambda base: base.serial, default=None)
