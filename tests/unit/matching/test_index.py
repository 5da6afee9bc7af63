from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.errors import BadArgument, Corrupt
from tocsin.matching import collect
from tocsin.matching.build import build_index
from tocsin.matching.index import Index, open_index
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Metric, Near, Op, Predicate
from tocsin.model.types import SqlType

TEXT, DOUBLE, LIST = SqlType("STRING"), SqlType("DOUBLE"), SqlType("STRING", is_array=True)
PROBES = (("kind", TEXT), ("x", DOUBLE), ("y", DOUBLE), ("r", DOUBLE), ("text", TEXT))
PARAMS = (("kind", TEXT), ("x", DOUBLE), ("y", DOUBLE), ("r", DOUBLE), ("word", TEXT), ("kinds", LIST))

KIND = Equal("kind", "kind")
CIRCLE = Near(Metric.PLANAR, "x", "y", "x", "y", inclusive=False, radius_param="r")
BROUGHT = Near(Metric.PLANAR, "x", "y", "x", "y", inclusive=True, radius_probe="r")
WORD, AMONG = HasWord("text", "word"), Member("kind", "kinds")


def spec(*predicates: Predicate) -> IndexSpec:
    return IndexSpec(predicates, PROBES, PARAMS, 500.0)


def built(folder: Path, predicates: tuple[Predicate, ...], **params: list[Any]) -> Index:
    n = len(next(iter(params.values())))
    types = {name: pa.list_(pa.string()) if kind == LIST else None for name, kind in PARAMS}
    columns = {name: pa.array(values, types[name]) for name, values in params.items()}
    build_index(spec(*predicates), columns, np.arange(10, 10 + n, dtype=np.uint32), folder / "index")
    return open_index(folder / "index")


def found(index: Index, rows: list[bool] | None = None, **columns: list[Any]) -> list[list[int]]:
    matches = index.probe(pa.table(columns), None if rows is None else np.array(rows))
    return [matches.ids[a:b].tolist() for a, b in zip(matches.offsets[:-1], matches.offsets[1:], strict=True)]


def test_equality_finds_the_subscriptions_of_the_value(tmp_path: Path) -> None:
    index = built(tmp_path, (KIND,), kind=["fire", "flood", "fire", None])
    assert found(index, kind=["fire", "flood", "quake", None]) == [[10, 12], [11], [], []]


def test_a_circle_excludes_its_rim_and_an_inclusive_one_does_not(tmp_path: Path) -> None:
    places = {"x": [0.0, 0.0], "y": [0.0, 0.0]}
    index = built(tmp_path, (CIRCLE,), **places, r=[5.0, math.nextafter(5.0, 6.0)])
    assert found(index, x=[3.0, 0.0], y=[4.0, 4.9]) == [[11], [10, 11]]
    index = built(tmp_path / "rim", (BROUGHT,), **places)
    assert found(index, x=[3.0, 3.0], y=[4.0, 4.0], r=[5.0, math.nextafter(5.0, 4.0)]) == [[10, 11], []]


def test_circles_of_every_size_are_found(tmp_path: Path) -> None:
    radii = [10.0**k for k in range(12)] + [math.inf]
    index = built(tmp_path, (CIRCLE,), x=[0.0] * 13, y=[0.0] * 13, r=radii)
    assert [len(row) for row in found(index, x=[0.0, 5e3, -5e10, 1e30], y=[0.0] * 4)] == [13, 9, 2, 1]


def test_a_record_reaches_as_far_as_its_own_radius(tmp_path: Path) -> None:
    index = built(tmp_path, (BROUGHT,), x=[1.0, 1e3, 1e5, 1e7], y=[0.0] * 4)
    reached = found(index, x=[0.0] * 6, y=[0.0] * 6, r=[-1.0, 0.0, 2e3, 2e5, 2e7, math.inf])
    assert [len(row) for row in reached] == [0, 0, 2, 3, 4, 4]


def test_a_word_is_found_whatever_its_case_and_once(tmp_path: Path) -> None:
    index = built(tmp_path, (WORD,), word=["Fire", "flood", "fire station", ""])
    assert found(index, text=["FIRE fire, Fire!", "a flood of fire", "firestation", None]) == [[10], [11, 10], [], []]


def test_an_element_counts_once_however_often_it_is_listed(tmp_path: Path) -> None:
    index = built(tmp_path, (AMONG,), kinds=[["a", "a", None], [], None, ["b", "a"]])
    assert found(index, kind=["a", "b", "c"]) == [[10, 13], [13], []]


def test_ranges_are_cut_at_the_value(tmp_path: Path) -> None:
    values = [1.0, 2.0, 2.0, 3.0, math.nan]
    expected = {Op.LT: [13, 14], Op.LE: [11, 12, 13, 14], Op.GT: [10], Op.GE: [10, 11, 12]}
    for op, ids in expected.items():
        index = built(tmp_path / op.name, (Compare("x", op, "x"),), x=values)
        assert sorted(found(index, x=[2.0])[0]) == ids


def test_without_predicates_everything_matches(tmp_path: Path) -> None:
    build_index(spec(), {}, np.array([4, 2], np.uint32), tmp_path / "index")
    assert found(open_index(tmp_path / "index"), kind=["x", None]) == [[4, 2], [4, 2]]


def test_rows_that_are_not_marked_match_nothing(tmp_path: Path) -> None:
    index = built(tmp_path, (KIND,), kind=["a"])
    assert found(index, [True, False, True], kind=["a", "a", "b"]) == [[10], [], []]


def test_all_kinds_of_tests_together(tmp_path: Path) -> None:
    index = built(
        tmp_path,
        (KIND, CIRCLE, WORD, Compare("r", Op.GE, "r")),
        kind=["a"] * 5, x=[0.0, 0.0, 9.0, 0.0, 0.0], y=[0.0] * 5, r=[5.0, 5.0, 5.0, 50.0, 5.0],
        word=["w", "v", "w", "w", None],
    )  # fmt: skip
    assert found(index, kind=["a", "b"], x=[1.0, 1.0], y=[1.0, 1.0], r=[7.0, 7.0], text=["w x", "w x"]) == [[10], []]


def test_small_blocks_and_little_room_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    params = {"x": rng.uniform(0, 4e3, 500).tolist(), "y": rng.uniform(0, 4e3, 500).tolist(), "r": [900.0] * 500}
    records = {name: rng.uniform(0, 4e3, 40).tolist() for name in ("x", "y", "r")}
    for name, predicates in (("plain", (CIRCLE,)), ("tested", (CIRCLE, Compare("r", Op.GT, "x")))):
        index = built(tmp_path / name, predicates, **params)
        whole = found(index, **records)
        with monkeypatch.context() as patch:
            patch.setattr(collect, "_BLOCK", 16)
            patch.setattr(collect, "_ROOM", 16)
            assert found(index, **records) == whole
        assert sum(map(len, whole)) > 500


def test_a_record_batch_and_a_table_of_many_chunks_are_read_alike(tmp_path: Path) -> None:
    index = built(tmp_path, (KIND, CIRCLE), kind=["a", "b"], x=[0.0, 0.0], y=[0.0, 0.0], r=[9.0, 9.0])
    batch = pa.record_batch({"kind": ["a", "b"], "x": [1.0, 1.0], "y": pa.array([1, 1], pa.int32())})
    chunked = pa.Table.from_batches([batch.slice(0, 1), batch.slice(1, 1)])
    assert index.probe(batch).ids.tolist() == index.probe(chunked).ids.tolist() == [10, 11]
    assert index.probe(batch.slice(0, 0)).offsets.tolist() == [0]


def test_an_index_of_nothing_matches_nothing(tmp_path: Path) -> None:
    for name, predicates in (("circle", (CIRCLE,)), ("range", (Compare("x", Op.LT, "x"),)), ("word", (WORD,))):
        empty = {"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64()), "r": pa.array([], pa.float64())}
        columns = empty | {"word": pa.array([], pa.string())}
        build_index(spec(*predicates), columns, np.array([], np.uint32), tmp_path / name)
        assert found(open_index(tmp_path / name), x=[1.0], y=[1.0], text=["w"]) == [[]]


def test_what_is_missing_or_does_not_fit_is_named(tmp_path: Path) -> None:
    index = built(tmp_path, (KIND,), kind=["a"])
    with pytest.raises(BadArgument, match="column kind: expected a column of that name"):
        index.probe(pa.table({"x": [1]}))
    with pytest.raises(BadArgument, match="rows: expected 1 booleans"):
        index.probe(pa.table({"kind": ["a"]}), np.array([True, False]))
    with pytest.raises(BadArgument, match="ids: expected distinct ids"):
        build_index(spec(KIND), {"kind": pa.array(["a", "b"])}, np.array([1, 1], np.uint32), tmp_path / "twice")
    with pytest.raises(BadArgument, match="parameter kind: expected 2 values"):
        build_index(spec(KIND), {"kind": pa.array(["a"])}, np.array([1, 2], np.uint32), tmp_path / "short")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("victim", ["meta.json", "entry_id.npy", "slots.npy"])
@pytest.mark.parametrize("harm", ["gone", "short"])
def test_a_directory_that_is_not_whole_does_not_open(tmp_path: Path, victim: str, harm: str) -> None:
    built(tmp_path, (KIND,), kind=["a", "b"])
    path = tmp_path / "index" / victim
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Corrupt):
        open_index(tmp_path / "index")


def test_meta_data_that_was_changed_does_not_open(tmp_path: Path) -> None:
    built(tmp_path, (KIND,), kind=["a", "b"])
    path = tmp_path / "index" / "meta.json"
    path.write_text(path.read_text().replace("500.0", "400.0"))
    with pytest.raises(Corrupt, match="disagree"):
        open_index(tmp_path / "index")
