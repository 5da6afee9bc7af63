"""A channel's results as a table: whole where it fits, cut and told so where it does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tocsin.datacluster.result_table import TableBounds, results_table
from tocsin.datacluster.storage import catalog, executions
from tocsin.datacluster.storage.executions import ExecutionStats
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore, result_path, write_result_file
from tocsin.errors import LimitExceeded
from tocsin.model.catalog import ChannelSpec

SHARED_BY, PAYLOAD = 100, b'{"n": 1}'


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[tuple[ResultStore, int]]:
    """Two executions with one result each, which a hundred share."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        for _ in range(2):
            run = ledger.write(lambda tx: executions.begin(tx, channel, {}, 1.0))
            path = result_path(tmp_path, channel, run.no, run.attempt, "0")
            ids, offsets = np.arange(SHARED_BY, dtype=np.uint32), np.array([0, SHARED_BY], np.int64)
            file = write_result_file(path, np.array([1]), np.array([0], np.int32), [PAYLOAD], offsets, ids)
            stats = ExecutionStats(rows=1)
            ledger.write(lambda tx, r=run, f=file, s=stats: executions.commit(tx, r, [f], s, [], 1.0))
        yield ResultStore(tmp_path, ledger), channel


def bounds(max_rows: int = 10**6, max_bytes: int = 10**6, left_s: float = 60.0) -> TableBounds:
    return TableBounds(max_rows, max_bytes, 30.0, time.monotonic() + left_s)


def test_every_backend_has_a_row(stored: tuple[ResultStore, int]) -> None:
    table, is_cut = results_table(*stored, bounds())
    assert (table.num_rows, is_cut) == (2 * SHARED_BY, False)
    assert table.column("backend").to_pylist() == [*range(SHARED_BY)] * 2
    assert set(table.column("result").to_pylist()) == {PAYLOAD.decode()}


@pytest.mark.parametrize("rows", [1, SHARED_BY - 1, SHARED_BY, SHARED_BY + 1, 2 * SHARED_BY - 1])
def test_more_rows_than_allowed_are_cut(stored: tuple[ResultStore, int], rows: int) -> None:
    table, is_cut = results_table(*stored, bounds(max_rows=rows))
    assert (table.num_rows, is_cut) == (rows, True)


def test_exactly_as_many_as_allowed_are_whole(stored: tuple[ResultStore, int]) -> None:
    table, is_cut = results_table(*stored, bounds(max_rows=2 * SHARED_BY))
    assert (table.num_rows, is_cut) == (2 * SHARED_BY, False)


def test_a_shared_result_counts_as_often_as_it_stands_there(stored: tuple[ResultStore, int]) -> None:
    table, is_cut = results_table(*stored, bounds(max_bytes=10 * (len(PAYLOAD) + 64)))
    assert (table.num_rows, is_cut) == (10, True)


def test_reading_ends_at_the_deadline(stored: tuple[ResultStore, int]) -> None:
    with pytest.raises(LimitExceeded, match="seconds a SELECT may run"):
        results_table(*stored, bounds(left_s=-1.0))


def test_no_results_are_an_empty_table(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        table, is_cut = results_table(ResultStore(tmp_path, ledger), channel, bounds())
    assert (table.num_rows, table.column_names, is_cut) == (0, ["id", "position", "backend", "result"], False)
