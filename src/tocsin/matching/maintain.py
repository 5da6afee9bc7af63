"""The index of a channel's subscriptions, kept up to date while it is read.

It is a *base*, persisted with its parameter sets; *pending* sets, added since; and ids *removed* from the
base. ``snapshot`` writes the last two, when they changed, and gives a reference to the three. ``compact``
makes the next base of them.

Rules:

- The parameters of an id never change. Adding an id that is there changes nothing, and so does removing
  one that is not: replaying changes that are already in the base is harmless.
- Files never change. Those of a snapshot stay until it is released as often as it was taken, and the
  current ones always.
- A base counts only when it is whole. After a crash the newest whole one is used, with the watermark given
  to the ``compact`` that wrote it; the caller adds and removes again what changed after it. Pending
  changes are not persisted.

Two locks, taken in this order: ``_shape`` is held while a snapshot is written or the base is swapped,
``_state`` for the moments in which the sets change. So adding and removing never wait for a file.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.errors import BadArgument
from tocsin.matching.access import check_spec
from tocsin.matching.base import Base, newest_base, write_base
from tocsin.matching.build import build_index
from tocsin.matching.encode import Columns
from tocsin.matching.fingerprint import process_seed
from tocsin.matching.layered import bitset
from tocsin.matching.pending import Pending, joined, params_schema, params_table, take
from tocsin.matching.refs import IndexRef
from tocsin.matching.spec import IndexSpec

Ids = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CompactionRule:
    """Compact when more changes are pending than ``least`` and than ``share`` of the base."""

    least: int = 2000
    share: float = 0.01


@dataclass(frozen=True, slots=True)
class Parts:
    """The parameter sets of one moment: those of ``base``, those added since, the ids removed from the base."""

    base: Base | None
    added_ids: Ids
    added: pa.Table
    removed: Ids


class SubscriptionIndex:
    def __init__(self, spec: IndexSpec, directory: Path, rule: CompactionRule | None = None) -> None:
        """Open what is in the directory; what is not whole, or of another spec, is deleted."""
        check_spec(spec)
        self.spec, self.directory, self.rule = spec, directory, rule or CompactionRule()
        self._schema = params_schema(spec)
        self._shape, self._state, self._compacting = threading.Lock(), threading.RLock(), threading.Lock()
        directory.mkdir(parents=True, exist_ok=True)
        self._base: Base | None = newest_base(directory, spec)
        self._seed = self._base.index.seed if self._base else process_seed()
        self._pending, self._removed = Pending(self._schema), set[int]()
        self._version = 0
        self._ref = IndexRef(self._base_dir(), None, None, self._version)
        self._is_pending_dirty = self._is_removed_dirty = False
        self._uses: Counter[IndexRef] = Counter()
        self._draft: Path | None = None  # the base that a compaction is writing
        self._is_closed = False
        self._sweep()

    @property
    def watermark(self) -> int:
        """What was given to the ``compact`` that wrote the base; 0 without a base."""
        return self._base.watermark if self._base else 0

    @property
    def pending(self) -> int:
        """How many changes are not in the base."""
        with self._state:
            return len(self._pending) + len(self._removed)

    @property
    def count(self) -> int:
        """How many subscriptions there are."""
        with self._state:
            return self._base_count() + len(self._pending) - len(self._removed)

    def needs_compaction(self, pending: int | None = None) -> bool:
        """Whether so many changes (by default those that are pending) are worth a new base."""
        changes = self.pending if pending is None else pending
        return changes > max(self.rule.least, self.rule.share * self._base_count())

    def add(self, ids: Ids, params: Columns) -> None:
        """Add subscriptions, the parameters standing at the same places as their ids."""
        ids = np.asarray(ids, np.uint32)
        table = params_table(self._schema, params, ids.size)
        with self._state:
            in_base = self._in_base(ids)
            self._revive(ids[in_base].tolist())
            new = np.array([n not in self._pending for n in ids.tolist()], np.bool_) & ~in_base
            if new.any():
                self._pending.add(ids[new].tolist(), take(table, np.flatnonzero(new)))
                self._is_pending_dirty = True

    def remove(self, ids: Ids) -> None:
        ids = np.asarray(ids, np.uint32)
        with self._state:
            gone = [self._pending.remove(n) for n in ids.tolist()]
            self._is_pending_dirty |= any(gone)
            fresh = set(ids[self._in_base(ids)].tolist()) - self._removed
            self._removed |= fresh
            self._is_removed_dirty |= bool(fresh)

    def snapshot(self) -> IndexRef:
        """The present state on disk. Release it when nobody reads it any more."""
        with self._shape:
            self._write_changes()
            self._uses[self._ref] += 1
            return self._ref

    def release(self, version: int) -> None:
        """Give back one snapshot; its files go when they are no one's and not current."""
        with self._shape:
            for ref in [r for r in self._uses if r.version == version]:
                self._uses[ref] -= 1
            self._uses = +self._uses
            if version != self._ref.version:
                self._sweep()

    def snapshot_parts(self) -> tuple[IndexRef, Parts]:
        """A snapshot, and the parameter sets themselves for who joins with them instead of probing.

        The sets may be newer than the snapshot by what was added meanwhile; their base is the snapshot's,
        so its files stay until the release.
        """
        with self._shape:
            self._write_changes()
            self._uses[self._ref] += 1
            with self._state:
                ids, params = self._pending.contents()
                return self._ref, Parts(self._base, ids, params, np.array(sorted(self._removed), np.uint32))

    def compact(self, watermark: int) -> bool:
        """Write the next base and swap it in; others may add, remove and take snapshots meanwhile.

        Whether it was written: a closed index writes none.
        """
        if watermark < 0:
            raise BadArgument("watermark", "a number from 0", watermark)
        with self._compacting:
            if self._is_closed:
                return False
            with self._state:
                old, removed, (ids, params) = self._base, set(self._removed), self._pending.contents()
            next_base = self._written(old, removed, ids, params, watermark)
            with self._shape:
                with self._state:
                    self._swap(next_base, old, removed, ids)
                self._write_changes()
        return True

    def steady(self) -> threading.Lock:
        """While this is held no base is being written; taking it waits for one that is."""
        return self._compacting

    def close(self) -> None:
        """Write no more bases. Pending changes are not kept. Whoever deletes the files holds ``steady``."""
        self._is_closed = True

    # -- the sets -------------------------------------------------------------------------------

    def _base_count(self) -> int:
        return self._base.index.count if self._base else 0

    def _in_base(self, ids: Ids) -> NDArray[np.bool_]:
        return self._base.contains(ids) if self._base else np.zeros(len(ids), np.bool_)

    def _revive(self, ids: list[int]) -> None:
        """Live in the base again."""
        back = self._removed.intersection(ids)
        self._removed -= back
        self._is_removed_dirty |= bool(back)

    def _swap(self, base: Base, old: Base | None, removed: set[int], ids: Ids) -> None:
        """Make ``base`` current; ``removed`` and ``ids`` are what it was made from."""
        revived = np.array(sorted(removed - self._removed), np.uint32)
        dead = (self._removed - removed).union(n for n in ids.tolist() if n not in self._pending)
        rest, params = self._pending.contents()
        is_new = ~base.contains(rest)
        self._base, self._pending, self._removed = base, Pending(self._schema), dead
        self._pending.add(rest[is_new].tolist(), take(params, np.flatnonzero(is_new)))
        if old is not None:
            self._pending.add(revived.tolist(), take(old.params(), old.places(revived)))
        self._is_pending_dirty = self._is_removed_dirty = True

    # -- the files ------------------------------------------------------------------------------

    def _path(self, kind: str) -> Path:
        """A name that no process has used before."""
        return self.directory / f"{kind}-{uuid.uuid4().hex}"

    def _base_dir(self) -> str | None:
        return str(self._base.directory) if self._base else None

    def _written(self, old: Base | None, removed: set[int], ids: Ids, params: pa.Table, watermark: int) -> Base:
        if old is not None:
            kept_ids, kept = old.without(removed)
            ids = np.concatenate([kept_ids, ids])
            params = joined(self._schema, [kept, params], ids.size)
        order = np.argsort(ids, kind="stable")
        serial = old.serial + 1 if old else 1
        ids, params = ids[order], take(params, order)
        self._draft = self._path("base")
        return write_base(self._draft, self.spec, ids, params, self._seed, serial, watermark)

    def _write_changes(self) -> None:
        with self._state:
            if not (self._is_pending_dirty or self._is_removed_dirty):
                return
            contents = self._pending.contents() if self._is_pending_dirty else None
            removed = np.array(sorted(self._removed), np.uint32) if self._is_removed_dirty else None
            self._is_pending_dirty = self._is_removed_dirty = False
            base_dir = self._base_dir()
        try:
            delta_dir = self._ref.delta_dir if contents is None else self._delta(*contents)
            removed_file = self._ref.removed_file if removed is None else self._bits(removed)
        except BaseException:
            self._is_pending_dirty = self._is_removed_dirty = True
            raise
        self._version += 1
        self._ref = IndexRef(base_dir, delta_dir, removed_file, self._version)
        self._sweep()

    def _delta(self, ids: Ids, params: pa.Table) -> str | None:
        if ids.size == 0:
            return None
        path = self._path("delta")
        build_index(self.spec, {n: params.column(n) for n in params.column_names}, ids, path, seed=self._seed)
        return str(path)

    def _bits(self, removed: Ids) -> str | None:
        if removed.size == 0:
            return None
        path = self._path("removed").with_suffix(".npy")
        np.save(path, bitset(removed), allow_pickle=False)
        return str(path)

    def _sweep(self) -> None:
        """Delete every file that neither the present state nor a snapshot in use needs."""
        needed = {Path(path).name for ref in (*self._uses, self._ref) for path in ref.paths}
        needed |= {path.name for path in (self._draft, self._base and self._base.directory) if path}
        for path in self.directory.iterdir():
            if path.name in needed or not path.name.startswith(("base-", "delta-", "removed-")):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
