"""References to a state of a maintained index, which workers open.

A reference is a few paths; it can be pickled. The files behind it never change, so a worker keeps the
last few that it opened.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tocsin.matching.collect import Bitset
from tocsin.matching.index import Index, open_index
from tocsin.matching.layered import LayeredIndex
from tocsin.matching.storage import map_array

T = TypeVar("T")

_KEPT = 512  # opened indexes that a process keeps, two a channel: pages are mapped, not read


@dataclass(frozen=True, slots=True)
class IndexRef:
    """One state: the base, what was added since, what was removed from the base."""

    base_dir: str | None
    delta_dir: str | None
    removed_file: str | None
    version: int

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(p for p in (self.base_dir, self.delta_dir, self.removed_file) if p is not None)


def open_ref(ref: IndexRef) -> LayeredIndex:
    """The index at that state; Corrupt where its files are gone."""
    base = _indexes(ref.base_dir) if ref.base_dir else None
    delta = _indexes(ref.delta_dir) if ref.delta_dir else None
    return LayeredIndex(base, delta, _bitsets(ref.removed_file) if ref.removed_file else None)


class _Opened(Generic[T]):
    """What was opened by path, the last ``_KEPT`` of it; what was deleted since is let go first."""

    def __init__(self, opener: Callable[[Path], T]) -> None:
        self._opener, self._known, self._lock = opener, OrderedDict[str, T](), threading.Lock()

    def __call__(self, path: str) -> T:
        with self._lock:
            if path not in self._known:
                opened = self._opener(Path(path))
                self._let_go()
                self._known[path] = opened
            self._known.move_to_end(path)
            return self._known[path]

    def _let_go(self) -> None:
        for path in [p for p in self._known if not os.path.exists(p)]:
            del self._known[path]
        while len(self._known) >= _KEPT:
            self._known.popitem(last=False)


_indexes: _Opened[Index] = _Opened(open_index)
_bitsets: _Opened[Bitset] = _Opened(map_array)
