from __future__ import annotations

import pytest

from tocsin.datacluster.storage import catalog, dataset_progress, executions
from tocsin.datacluster.storage.dataset_progress import Progress
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx
from tocsin.model.catalog import ChannelSpec, Column, DatasetSpec
from tocsin.model.types import SqlType

REPORTS = DatasetSpec("Reports", (Column("n", SqlType("INT")),))


@pytest.fixture
def dataset(ledger: Ledger) -> int:
    return ledger.write(lambda tx: catalog.create_dataset(tx, REPORTS)).id


def reached(ledger: Ledger, dataset: int) -> int:
    return ledger.read(lambda tx: dataset_progress.reached(tx, dataset))


def test_nobody_has_seen_anything_of_a_new_dataset(ledger: Ledger, dataset: int) -> None:
    assert reached(ledger, dataset) == 0


def test_windows_begun_executions_and_noted_heads_count(ledger: Ledger, dataset: int) -> None:
    ledger.write(lambda tx: dataset_progress.note(tx, {dataset: Progress(3)}))
    assert reached(ledger, dataset) == 3

    def with_channel(tx: Tx) -> int:
        channel = catalog.create_channel(tx, ChannelSpec("C", (), "SELECT"), 0.0)
        executions.open_window(tx, channel.id, dataset, 5)
        return channel.id

    channel = ledger.write(with_channel)
    assert reached(ledger, dataset) == 5
    ledger.write(lambda tx: executions.begin(tx, channel, {dataset: (5, 8)}, 0.0))
    assert reached(ledger, dataset) == 8
    assert reached(ledger, dataset + 100) == 0


def test_a_noted_head_never_goes_back(ledger: Ledger, dataset: int) -> None:
    ledger.write(lambda tx: dataset_progress.note(tx, {dataset: Progress(9, 2)}))
    ledger.write(lambda tx: dataset_progress.note(tx, {dataset: Progress(4, 3)}))
    assert ledger.read(dataset_progress.noted) == {dataset: Progress(9, 3)}


def test_a_dropped_dataset_is_not_noted(ledger: Ledger, dataset: int) -> None:
    ledger.write(lambda tx: dataset_progress.note(tx, {dataset: Progress(9)}))
    ledger.write(lambda tx: catalog.drop_dataset(tx, "Reports"))
    ledger.write(lambda tx: dataset_progress.note(tx, {dataset: Progress(9)}))
    assert ledger.read(dataset_progress.noted) == {}
