"""Laws: the index returns the pairs that a dumb evaluator returns, whole or in layers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support.matching_worlds import arrow_columns, expected, found_by_row, record_table, worlds
from tocsin.matching.build import build_index
from tocsin.matching.index import open_index
from tocsin.matching.layered import LayeredIndex, bitset


@settings(max_examples=400, deadline=None)
@given(worlds())
def test_the_index_finds_what_the_dumb_evaluator_finds(world: Any) -> None:
    spec, params, records = world
    ids = np.arange(len(params), dtype=np.uint32) * 7 + 3
    with tempfile.TemporaryDirectory() as folder:
        build_index(spec, arrow_columns(spec.param_types, params), ids, Path(folder, "index"))
        found = found_by_row(open_index(Path(folder, "index")).probe(record_table(spec, records)))
    for record, got in zip(records, found, strict=True):
        sure, unsure = expected(spec, record, params)
        places = {(i - 3) // 7 for i in got}
        assert len(got) == len(places)
        assert sure <= places <= sure | unsure


@settings(max_examples=100, deadline=None)
@given(worlds(), st.data())
def test_base_without_the_removed_and_delta_make_the_whole(world: Any, data: st.DataObject) -> None:
    spec, params, records = world
    split = data.draw(st.integers(0, len(params)))
    removed = data.draw(st.sets(st.integers(0, max(split - 1, 0)), max_size=split))
    columns, table = arrow_columns(spec.param_types, params), record_table(spec, records)
    ids = np.arange(len(params), dtype=np.uint32)
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("all", slice(0, None)), ("base", slice(0, split)), ("delta", slice(split, None))):
            build_index(spec, {n: c[part] for n, c in columns.items()}, ids[part], Path(folder, name))
        whole, base, delta = (open_index(Path(folder, name)) for name in ("all", "base", "delta"))
        got = found_by_row(LayeredIndex(base, delta, bitset(np.array(sorted(removed), np.uint32))).probe(table))
        assert [sorted(row) for row in got] == [sorted(set(row) - removed) for row in found_by_row(whole.probe(table))]
