from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tocsin.errors import BadArgument
from tocsin.matching import maintain
from tocsin.matching.maintain import CompactionRule, SubscriptionIndex
from tocsin.matching.refs import IndexRef, open_ref
from tocsin.matching.spec import Equal, IndexSpec
from tocsin.model.types import SqlType

TEXT = SqlType("STRING")
SPEC = IndexSpec((Equal("kind", "kind"),), (("kind", TEXT),), (("kind", TEXT),))
OTHER = IndexSpec((Equal("sort", "kind"),), (("sort", TEXT),), (("kind", TEXT),))


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def add(index: SubscriptionIndex, *ids: int) -> None:
    """Odd ids want odd records, even ones even records."""
    index.add(numbers(*ids), {"kind": pa.array(["odd" if i % 2 else "even" for i in ids], pa.string())})


def found(ref: IndexRef) -> list[int]:
    return sorted(open_ref(ref).probe(pa.table({"kind": ["odd", "even"]})).ids.tolist())


def seen(index: SubscriptionIndex) -> list[int]:
    ref = index.snapshot()
    try:
        return found(ref)
    finally:
        index.release(ref.version)


def test_added_and_removed_before_and_after_a_base(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2, 3)
    index.remove(numbers(2))
    assert seen(index) == [1, 3]
    index.compact(7)
    add(index, 4)
    index.remove(numbers(1, 99))
    assert seen(index) == [3, 4]
    assert (index.count, index.pending, index.watermark) == (2, 2, 7)


def test_an_id_that_comes_back_lives_in_the_base_again(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2)
    index.compact(1)
    index.remove(numbers(1))
    add(index, 1, 1, 2)
    assert index.pending == 0
    assert seen(index) == [1, 2]


def test_a_reopened_index_has_the_last_base_and_its_watermark(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2)
    index.compact(41)
    add(index, 3)
    index.compact(42)
    index.remove(numbers(1))
    index.snapshot()
    again = SubscriptionIndex(SPEC, tmp_path)
    assert (again.watermark, seen(again)) == (42, [1, 2, 3])
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("victim", ["meta.json", "params.arrow", "entry_id.npy"])
def test_a_broken_base_is_as_good_as_none(tmp_path: Path, victim: str) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2)
    index.compact(5)
    path = next(tmp_path.glob(f"base-*/{victim}"))
    path.write_bytes(path.read_bytes()[:-1])
    again = SubscriptionIndex(SPEC, tmp_path)
    assert (again.watermark, again.count, seen(again)) == (0, 0, [])
    assert list(tmp_path.iterdir()) == []


def test_a_base_of_another_spec_is_not_used(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1)
    index.compact(5)
    assert SubscriptionIndex(OTHER, tmp_path).watermark == 0


def test_half_written_directories_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".base-1.draft").mkdir()
    (tmp_path / "base-2").mkdir()
    (tmp_path / "delta-3").mkdir()
    SubscriptionIndex(SPEC, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_is_written_only_when_something_changed(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1)
    first = index.snapshot()
    assert index.snapshot() == first
    index.remove(numbers(5))
    assert index.snapshot() == first
    add(index, 2)
    assert index.snapshot().version > first.version


def test_a_held_snapshot_stays_readable_until_it_is_released(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2)
    index.compact(1)
    index.remove(numbers(1))
    add(index, 3)
    held, same = index.snapshot(), index.snapshot()
    add(index, 4)
    index.compact(2)
    index.release(held.version)
    assert all(Path(path).exists() for path in held.paths)
    assert found(pickle.loads(pickle.dumps(held))) == [2, 3]
    index.release(same.version)
    assert not any(Path(path).exists() for path in held.paths)
    assert seen(index) == [2, 3, 4]


def test_changes_during_a_compaction_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2, 3)
    index.compact(1)
    index.remove(numbers(1))
    add(index, 10, 11)
    is_writing, may_write = threading.Event(), threading.Event()
    write = maintain.write_base

    def slow(*args: object) -> object:
        is_writing.set()
        assert may_write.wait(10)
        return write(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(maintain, "write_base", slow)
    done = ThreadPoolExecutor(1).submit(index.compact, 2)
    assert is_writing.wait(10)
    add(index, 1, 12)
    index.remove(numbers(2, 10))
    assert seen(index) == [1, 3, 11, 12]
    may_write.set()
    done.result(10)
    assert seen(index) == [1, 3, 11, 12]
    assert index.pending == 4
    index.compact(3)
    assert (seen(index), index.pending) == ([1, 3, 11, 12], 0)


def test_files_may_be_deleted_once_a_compaction_has_ended_and_the_index_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1, 2)
    is_writing, may_write, deleted = threading.Event(), threading.Event(), threading.Event()
    write = maintain.write_base

    def slow(*args: object) -> object:
        is_writing.set()
        assert may_write.wait(10)
        assert not deleted.is_set(), "its directory went away under the compaction"
        return write(*args)  # type: ignore[arg-type]

    def delete() -> None:
        with index.steady():
            index.close()
        deleted.set()

    monkeypatch.setattr(maintain, "write_base", slow)
    with ThreadPoolExecutor(2) as threads:
        compaction = threads.submit(index.compact, 2)
        assert is_writing.wait(10)
        deletion = threads.submit(delete)
        may_write.set()
        compaction.result(10)
        deletion.result(10)
    assert not index.compact(3)
    assert index.watermark == 2, "a closed index writes no more bases"


def test_a_failed_write_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    add(index, 1)

    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(maintain, "build_index", full)
        with pytest.raises(OSError, match="disk full"):
            index.snapshot()
    assert seen(index) == [1]


def test_threads_add_and_remove_while_others_read_and_compact(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    problems: list[BaseException] = []

    def change(start: int) -> None:
        try:
            for i in range(start, start + 40):
                add(index, i)
                if i % 4 == 0:
                    index.remove(numbers(i))
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=change, args=(1000 * k,)) for k in range(1, 4)]
    for thread in threads:
        thread.start()
    ever = {i for k in range(1, 4) for i in range(1000 * k, 1000 * k + 40)}
    while any(thread.is_alive() for thread in threads):
        index.compact(1)
        assert set(seen(index)) <= ever
    assert not problems
    assert seen(index) == sorted(i for i in ever if i % 4)


@pytest.mark.parametrize(
    ("pending", "needs"),
    [
        pytest.param(10, False, id="few changes can wait"),
        pytest.param(11, True, id="more than the least of a small base cannot"),
    ],
)
def test_needs_compaction(tmp_path: Path, pending: int, needs: bool) -> None:
    assert SubscriptionIndex(SPEC, tmp_path, CompactionRule(least=10)).needs_compaction(pending) == needs


def test_a_large_base_bears_more_changes(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path, CompactionRule(least=1, share=0.5))
    add(index, *range(10))
    assert index.needs_compaction()
    index.compact(1)
    assert [index.needs_compaction(n) for n in (5, 6)] == [False, True]


def test_parameters_that_do_not_fit_are_named_and_change_nothing(tmp_path: Path) -> None:
    index = SubscriptionIndex(SPEC, tmp_path)
    with pytest.raises(BadArgument, match="parameter kind: expected its values"):
        index.add(numbers(1), {})
    with pytest.raises(BadArgument, match="parameter kind: expected 1 values"):
        index.add(numbers(1), {"kind": pa.array(["a", "b"])})
    with pytest.raises(BadArgument, match="watermark"):
        index.compact(-1)
    assert index.count == 0


def test_a_channel_without_parameters_is_kept_too(tmp_path: Path) -> None:
    spec = IndexSpec((), (), ())
    index = SubscriptionIndex(spec, tmp_path)
    index.add(numbers(5, 6), {})
    index.compact(1)
    index.add(numbers(7), {})
    index.remove(numbers(5))
    index.compact(2)
    assert open_ref(SubscriptionIndex(spec, tmp_path).snapshot()).probe(pa.table({"a": [1]})).ids.tolist() == [6, 7]
