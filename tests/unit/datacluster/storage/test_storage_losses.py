"""A log that was cut off behind our back: its numbers are not given out again, and the loss is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.storage.arrow_types import arrow_schema
from tocsin.datacluster.storage.dataset import DatasetStore, StoreOptions
from tocsin.datacluster.storage.losses import Loss
from tocsin.model.catalog import Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

REPORTS = DatasetSpec("Reports", (Column("n", SqlType("INT")),), retain=Retention(records=3))
USERS = DatasetSpec("Users", (Column("n", SqlType("INT"), not_null=True),), ("n",))


def opened(directory: Path, reached: int = 0, spec: DatasetSpec = REPORTS) -> DatasetStore:
    options = StoreOptions(delete_after_s=0.0)
    return DatasetStore(directory, spec, VirtualClock(1000.0), options, reached=reached)


def fill(store: DatasetStore, *numbers: int) -> None:
    for n in numbers:
        store.append(pa.table({"n": [n]}, schema=arrow_schema(store.spec)), f"key {n}")


def cut_off(directory: Path, kept: int, spec: DatasetSpec = REPORTS) -> DatasetStore:
    """A dataset of five records of which the log lost those after ``kept``; opened again."""
    store = opened(directory, spec=spec)
    fill(store, 1, 2, 3, 4, 5)
    end = next((ref.offset for ref in store._records.log.refs() if ref.first_seq > kept), None)
    store.close()
    log = directory / "log" / f"{1:020d}.log"
    log.write_bytes(log.read_bytes()[:end])
    return opened(directory, reached=5, spec=spec)


def numbers(table: pa.Table) -> list[tuple[int, int]]:
    return [(row["__seq"], row["n"]) for row in table.to_pylist()]


@pytest.mark.parametrize("spec", [REPORTS, USERS], ids=["appending", "keyed"])
@pytest.mark.parametrize("kept", [0, 2, 4])
def test_lost_numbers_are_not_given_out_again(tmp_path: Path, kept: int, spec: DatasetSpec) -> None:
    store = cut_off(tmp_path, kept, spec)
    assert store.head == 5
    fill(store, 60, 70)
    there = [(n, n) for n in range(1, kept + 1)] + [(6, 60), (7, 70)]
    assert numbers(store.now()) == there
    assert numbers(store.new(5, 7)) == [(6, 60), (7, 70)]
    assert store.count == len(there)


def test_the_loss_is_told_and_stays_told_over_restarts(tmp_path: Path) -> None:
    store = cut_off(tmp_path, 2)
    assert store.problem == str(Loss(3, 5))
    fill(store, 60)
    store.close()
    again = opened(tmp_path)
    assert (again.problem, again.head) == (store.problem, 6)
    assert numbers(again.now()) == [(1, 1), (2, 2), (6, 60)]


def test_a_crash_after_the_mark_changes_nothing(tmp_path: Path) -> None:
    cut_off(tmp_path, 2).close()
    (tmp_path / "log" / f"{6:020d}.log").unlink()
    store = opened(tmp_path, reached=5)
    fill(store, 60)
    assert numbers(store.now()) == [(1, 1), (2, 2), (6, 60)]


def test_a_torn_write_before_the_hole_is_cut_off(tmp_path: Path) -> None:
    store = opened(tmp_path)
    fill(store, 1, 2)
    store.close()
    log = tmp_path / "log" / f"{1:020d}.log"
    log.write_bytes(log.read_bytes()[:-3])
    opened(tmp_path, reached=2).close()
    assert numbers(opened(tmp_path).now()) == [(1, 1)]


@pytest.mark.parametrize("end", [-3, 150], ids=["in the second frame", "in the first"])
def test_what_is_left_of_a_cut_off_frame_is_kept_and_named(tmp_path: Path, end: int) -> None:
    store = opened(tmp_path)
    fill(store, 1, 2)
    store.close()
    log = tmp_path / "log" / f"{1:020d}.log"
    log.write_bytes(remains := log.read_bytes()[:end])
    store = opened(tmp_path, reached=2)
    assert str(store.problem).endswith(f"; the damaged segment is kept as {log.name}.damaged")
    assert (tmp_path / "log" / f"{log.name}.damaged").read_bytes() == remains
    store.close()
    assert opened(tmp_path, reached=2).problem == store.problem


def test_compaction_goes_over_the_hole_and_retention_ends_the_fault(tmp_path: Path) -> None:
    store = cut_off(tmp_path, 2)
    fill(store, 60)
    store._records.log.roll()
    assert store.compact()
    assert numbers(store.now()) == [(1, 1), (2, 2), (6, 60)]
    store.close()
    store = opened(tmp_path)
    assert store.problem == str(Loss(3, 5))
    fill(store, 70, 80)
    store.expire()
    assert (numbers(store.now()), store.problem, store.count) == ([(6, 60), (7, 70), (8, 80)], None, 3)
    store.close()
    assert opened(tmp_path).problem is None


def test_a_key_whose_records_are_lost_may_be_sent_again(tmp_path: Path) -> None:
    store = cut_off(tmp_path, 2)
    fill(store, 2, 5)
    assert numbers(store.now()) == [(1, 1), (2, 2), (6, 5)]


def test_a_whole_log_is_no_loss(tmp_path: Path) -> None:
    store = cut_off(tmp_path, 5)
    assert (store.problem, store.head, store.count) == (None, 5, 5)
