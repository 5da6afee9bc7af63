"""Records encoded once for several indexes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tocsin.matching import records
from tocsin.matching.build import build_index
from tocsin.matching.index import Index, open_index
from tocsin.matching.layered import LayeredIndex
from tocsin.matching.records import Records
from tocsin.matching.spec import Compare, Equal, IndexSpec, Op
from tocsin.model.types import SqlType

KIND, LEVEL = SqlType("STRING"), SqlType("INT")
SPEC = IndexSpec(
    predicates=(Equal("kind", "wanted"), Compare("level", Op.GE, "least")),
    probe_types=(("kind", KIND), ("level", LEVEL)),
    param_types=(("wanted", KIND), ("least", LEVEL)),
)
REPORTS = pa.table(
    {"a": ["fire", "flood", "fire"], "b": ["flood", "flood", "fire"], "level": pa.array([3, 1, 1], pa.int32())}
)


def index_of(path: Path, least: list[int], seed: tuple[int, int] = (1, 2)) -> Index:
    params = {"wanted": pa.array(["fire"] * len(least)), "least": pa.array(least, pa.int32())}
    build_index(SPEC, params, np.arange(len(least), dtype=np.uint32), path, seed=seed)
    return open_index(path)


def test_indexes_of_one_spec_and_seed_share_what_was_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []
    monkeypatch.setattr(records, "encode_records", lambda *a: encoded.append(a) or encode(*a))
    indexes = [LayeredIndex(index_of(tmp_path / str(n), least), None) for n, least in enumerate([[1, 2], [3, 4]])]
    other = LayeredIndex(index_of(tmp_path / "other", [1], seed=(3, 4)), None)
    shared, by_a, by_b = Records(REPORTS), {"kind": "a", "level": "level"}, {"kind": "b", "level": "level"}
    found = [i.match(shared, by_a).ids.tolist() for i in indexes]
    assert (found, len(encoded)) == ([[0, 1, 0], [0]], 1)
    assert other.match(shared, by_a).ids.tolist() == [0, 0]
    assert indexes[0].match(shared, by_b).ids.tolist() == [0]
    assert len(encoded) == 3


def test_each_index_has_rows_of_its_own(tmp_path: Path) -> None:
    index = LayeredIndex(index_of(tmp_path / "base", [1, 1]), index_of(tmp_path / "delta", [1]))
    shared, names = Records(REPORTS), {"kind": "a", "level": "level"}
    for rows, offsets in [
        ([True, True, False], [0, 3, 3, 3]),
        ([False, True, True], [0, 0, 0, 3]),
        (None, [0, 3, 3, 6]),
    ]:
        mask = None if rows is None else np.array(rows)
        assert index.match(shared, names, mask).offsets.tolist() == offsets


encode = records.encode_records
