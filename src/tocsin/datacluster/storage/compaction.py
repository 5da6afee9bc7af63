"""Moving records from a dataset's log to Parquet, and letting old ones go.

New files are synced first; switching the manifest is the one step that counts; what it no longer
names is deleted afterwards, Parquet only after a while, because readers may have been given its name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec
import pyarrow as pa

from tocsin.clock import Clock
from tocsin.datacluster.storage import expiry, faults, manifest
from tocsin.datacluster.storage.expiry import Piece
from tocsin.datacluster.storage.files import TEMPORARY, write_atomically
from tocsin.datacluster.storage.idempotency import RememberedKey
from tocsin.datacluster.storage.keyed import sequence
from tocsin.datacluster.storage.manifest import Manifest, SeqTime, StoredFile
from tocsin.datacluster.storage.parquet import write_parquet
from tocsin.datacluster.storage.recordlog import RecordLog
from tocsin.model.catalog import DatasetSpec


class Compactor:
    """The files of one dataset; ``lock`` keeps two compactions or expiries apart."""

    def __init__(self, directory: Path, clock: Clock, delete_after_s: float) -> None:
        self._directory, self._clock, self._delete_after_s = directory, clock, delete_after_s
        self._doomed: list[tuple[float, Path]] = []
        self.lock = threading.Lock()

    def sweep(self, current: Manifest) -> None:
        """Delete the files that a crash left behind."""
        known = {*current.names, manifest.FILE}
        for path in self._directory.iterdir():
            is_ours = path.suffix == ".parquet" or path.name.startswith("keys-")
            if path.name.endswith(TEMPORARY) or (is_ours and path.name not in known):
                path.unlink()

    def load_keys(self, current: Manifest) -> list[RememberedKey]:
        if current.keys is None:
            return []
        return msgspec.json.decode((self._directory / current.keys).read_bytes(), type=list[RememberedKey])

    def write(
        self, current: Manifest, parts: Iterable[pa.Table], schema: pa.Schema, version: int, through: int
    ) -> StoredFile:
        prefix = f"records-{current.compacted_through + 1:020d}"
        return write_parquet(self._directory, prefix, parts, schema, version, through)

    def compacted(
        self, current: Manifest, made: StoredFile, spec: DatasetSpec, log: RecordLog, through: int
    ) -> Manifest:
        """The manifest with a new file: beside the others, or for a keyed dataset in their place."""
        files = (made,) if spec.is_keyed else (*current.files, made)
        times = expiry.coarse([t for t in _times(current, log, through) if t.seq > current.floor], spec.retain)
        keys = self._save_keys(log, through)
        return replace(current, compacted_through=through, files=files, times=times, keys=keys)

    def expired(self, current: Manifest, spec: DatasetSpec, log: RecordLog, floor: int) -> Manifest:
        """The manifest without what has a number up to ``floor``."""
        if spec.is_keyed:
            return replace(current, floor=floor)
        files = tuple(f for f in current.files if f.last > floor)
        through = max(current.compacted_through, min(floor, log.closed_through()))
        keys = self._save_keys(log, through) if through > current.compacted_through else current.keys
        return replace(current, floor=floor, files=files, compacted_through=through, keys=keys)

    def floor(self, current: Manifest, spec: DatasetSpec, log: RecordLog, state: pa.Table | None, now: float) -> int:
        """The number up to which retention lets records go; ``state`` is a keyed dataset's."""
        by_age = expiry.floor_by_age(spec.retain, _times(current, log, log.head), now)
        if state is not None:
            return max(by_age, expiry.keyed_floor(spec.retain, sequence(state), state.nbytes))
        pieces = [Piece(f.first, f.last, f.size_bytes) for f in current.files]
        logged = (r for r in log.refs() if r.last_seq > current.compacted_through)
        pieces += [Piece(r.first_seq, r.last_seq, r.size_bytes) for r in logged]
        return max(by_age, expiry.appended_floor(spec.retain, log.head, pieces))

    def switched(self, former: Manifest, to: Manifest) -> None:
        """Make ``to`` the durable manifest, and let go the files that only ``former`` named."""
        manifest.switch(self._directory, to)
        due_at = self._clock.monotonic() + self._delete_after_s
        self._doomed += [(due_at, self._directory / name) for name in former.names - to.names]
        faults.point("compact.before-delete")
        self.delete_due()

    def delete_due(self) -> None:
        now = self._clock.monotonic()
        for due_at, path in self._doomed:
            if due_at <= now:
                path.unlink(missing_ok=True)
        self._doomed = [(due_at, path) for due_at, path in self._doomed if due_at > now]

    def _save_keys(self, log: RecordLog, through: int) -> str | None:
        remembered = log.keys_through(through)
        if not remembered:
            return None
        name = f"keys-{through:020d}.json"
        data = msgspec.json.encode(remembered)
        write_atomically(self._directory / name, lambda file: file.write(data), "compact.after-file")
        return name


def _times(current: Manifest, log: RecordLog, through: int) -> list[SeqTime]:
    """When records were committed, oldest first."""
    start = current.times[-1].seq if current.times else 0
    logged = [SeqTime(r.last_seq, r.time_us) for r in log.refs() if start < r.last_seq <= through]
    return [*current.times, *logged]
