"""The state of a keyed dataset at any recent sequence number.

A base table as of some number, and the changes since: at most one row a key, deletions marked. The
state at ``s`` is the base with the changes up to ``s`` applied. Changes and states of a few recent
numbers are kept, because the end of one window is the start of the next; when the changes have grown
large beside the base, they are merged into it, as far back as nobody asks any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tocsin.datacluster.storage import keyed
from tocsin.datacluster.storage.keyed import DELETED, Indices

_KEPT = 8
_MIN_REBASE_ROWS = 10_000
K = TypeVar("K", bound=Hashable)


class KeyedState:
    """``fetch(after, through)`` gives the logged rows of a window, in order, with ``__deleted``.

    Rows with numbers up to ``floor`` have expired and are not shown. Not safe for two threads.
    """

    def __init__(
        self, base: pa.Table, at: int, key: Sequence[str], fetch: Callable[[int, int], pa.Table], floor: int
    ) -> None:
        self._base, self.at, self._key, self._fetch, self._floor = base, at, tuple(key), fetch, floor
        self._base_keys: pa.ChunkedArray | None = None
        self._changes: OrderedDict[int, pa.Table] = OrderedDict()
        self._states: OrderedDict[int, pa.Table] = OrderedDict()
        self._windows: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()

    def window(self, after: int, through: int) -> pa.Table:
        """The last version of each key in a window, deletions marked."""
        found = self._windows.get((after, through))
        if found is None:
            found = keyed.last_versions(self._fetch(after, through), self._key)
            _keep(self._windows, (after, through), found)
        return found

    def now(self, through: int) -> pa.Table:
        """The latest version of each key as of ``through``."""
        found = self._states.get(through)
        if found is None:
            found = self._shown(keyed.apply_changes(self._base, self._since_base(through), self._key, self._base_key()))
            _keep(self._states, through, found, limit=3)
        return found

    def lookup(self, keys: pa.Table, at: int) -> pa.Table:
        """The version as of ``at`` of each key in ``keys``, row by row; NULLs where there is none."""
        changes = self._since_base(at)
        wanted = keyed.key_array(keys, self._key)
        changed = keyed.match(wanted, keyed.key_array(changes, self._key))
        based = np.where(changed >= 0, -1, keyed.match(wanted, self._base_key()))
        found = pa.concat_tables([_rows(changes, changed), _rows(self._marked_base(), based)])
        places = np.full(keys.num_rows, -1, np.int64)
        places[np.concatenate([np.flatnonzero(changed >= 0), np.flatnonzero(based >= 0)])] = np.arange(found.num_rows)
        if found.num_rows:
            hidden = found.column(DELETED).to_numpy() | (keyed.sequence(found) <= self._floor)
            places = np.where((places >= 0) & ~hidden[places], places, -1)
        return keyed.take_or_null(found.drop_columns([DELETED]), places)

    def rebase(self, at: int, *, always: bool = False) -> None:
        """Merge the changes up to ``at`` into the base, if they have grown large beside it or ``always``."""
        if at <= self.at:
            return
        changes = self._since_base(at)
        if always or changes.num_rows > max(_MIN_REBASE_ROWS, self._base.num_rows // 4):
            self._base = keyed.apply_changes(self._base, changes, self._key, self._base_key()).combine_chunks()
            self._base_keys = None
            self.at = at
            self._changes.clear()

    def _base_key(self) -> pa.ChunkedArray:
        if self._base_keys is None:
            self._base_keys = keyed.key_array(self._base, self._key)
        return self._base_keys

    def _marked_base(self) -> pa.Table:
        return self._base.append_column(DELETED, pa.repeat(False, self._base.num_rows))

    def _since_base(self, through: int) -> pa.Table:
        found = self._changes.get(through)
        if found is None:
            start = max((s for s in self._changes if s < through), default=self.at)
            newer = self.window(start, through)
            found = keyed.merge_changes(self._changes[start], newer, self._key) if start in self._changes else newer
            _keep(self._changes, through, found)
        return found

    def _shown(self, table: pa.Table) -> pa.Table:
        if not self._floor or not table.num_rows:
            return table
        return table.filter(pa.array(keyed.sequence(table) > self._floor))


def _rows(table: pa.Table, rows: Indices) -> pa.Table:
    return table.take(pa.array(rows[rows >= 0]))


def _keep(cache: OrderedDict[K, pa.Table], key: K, table: pa.Table, limit: int = _KEPT) -> None:
    cache[key] = table
    while len(cache) > limit:
        cache.popitem(last=False)
