"""Law: a maintained index equals a fresh build, whatever was done to it and in whatever order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.matching_worlds import arrow_columns, found_by_row, record_table, worlds
from tocsin.matching import storage
from tocsin.matching.build import build_index
from tocsin.matching.index import open_index
from tocsin.matching.maintain import SubscriptionIndex
from tocsin.matching.refs import IndexRef, open_ref
from tocsin.matching.spec import IndexSpec


class Maintained(RuleBasedStateMachine):
    """Whatever is added, removed, compacted, reopened: a snapshot equals a fresh build of what is live."""

    @initialize(world=worlds(), data=st.data())
    def start(self, world: Any, data: st.DataObject) -> None:
        self.spec, params, self.records = world
        self.params = params or [data.draw(rows_for(self.spec))]
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(storage, "sync", lambda _: None)  # no power fails here, and waiting for disks is slow
        self.index = SubscriptionIndex(self.spec, Path(self.folder.name, "kept"))
        self.live: set[int] = set()
        self.compacted: set[int] = set()
        self.moves = 0
        self.held: list[tuple[IndexRef, list[list[int]]]] = []

    @rule(numbers=st.sets(st.integers(0, 9), max_size=8))
    def add(self, numbers: set[int]) -> None:
        self._add(numbers)

    @rule(numbers=st.sets(st.integers(0, 9), max_size=8))
    def remove(self, numbers: set[int]) -> None:
        self._remove(numbers)

    @rule()
    def compact(self) -> None:
        self.moves += 1
        self.index.compact(self.moves)
        self.compacted = set(self.live)

    @rule(during=st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 9), max_size=8)), max_size=4))
    def compact_while_changing(self, during: list[tuple[bool, set[int]]]) -> None:
        self.moves += 1
        self.compacted = set(self.live)
        written, index = type(self.index)._written, self.index

        def slow(*args: Any) -> Any:
            base = written(index, *args)
            for is_added, numbers in during:
                (self._add if is_added else self._remove)(numbers)
                index.release(index.snapshot().version)
            return base

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "_written", slow)
            index.compact(self.moves)

    @rule()
    def reopen(self) -> None:
        self.held.clear()
        self.index = SubscriptionIndex(self.spec, self.index.directory)
        assert self.index.watermark == self.moves
        self.live = set(self.compacted)

    @rule()
    def hold(self) -> None:
        ref = self.index.snapshot()
        self.held.append((ref, self._found(ref)))

    @rule()
    def let_go(self) -> None:
        for ref, found in self.held:
            assert self._found(ref) == found
            self.index.release(ref.version)
        self.held.clear()

    @invariant()
    def equals_a_fresh_build(self) -> None:
        if not hasattr(self, "index"):
            return
        ref = self.index.snapshot()
        assert self.index.count == len(self.live)
        assert self._found(ref) == self._fresh()
        self.index.release(ref.version)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()
            self.patch.undo()

    def _columns(self, numbers: list[int]) -> dict[str, pa.Array]:
        return arrow_columns(self.spec.param_types, [self.params[n % len(self.params)] for n in numbers])

    def _add(self, numbers: set[int]) -> None:
        self.index.add(np.array(list(numbers), np.uint32), self._columns(list(numbers)))
        self.live |= numbers

    def _remove(self, numbers: set[int]) -> None:
        self.index.remove(np.array(list(numbers), np.uint32))
        self.live -= numbers

    def _found(self, ref: IndexRef) -> list[list[int]]:
        found = found_by_row(open_ref(ref).probe(record_table(self.spec, self.records)))
        return [sorted(row) for row in found]

    def _fresh(self) -> list[list[int]]:
        numbers = sorted(self.live)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "fresh")
            build_index(self.spec, self._columns(numbers), np.array(numbers, np.uint32), path)
            return [sorted(row) for row in found_by_row(open_index(path).probe(record_table(self.spec, self.records)))]


def rows_for(spec: IndexSpec) -> st.SearchStrategy[dict[str, Any]]:
    return st.just({name: None for name, _ in spec.param_types})


TestMaintained = Maintained.TestCase
TestMaintained.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
