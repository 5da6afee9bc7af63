"""Upkeep beside statements that come at the worst moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.housekeeping import Housekeeping
from tocsin.datacluster.storage import catalog, executions
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore
from tocsin.datacluster.storage.transaction import Tx
from tocsin.model.catalog import ChannelSpec, Column, DatasetSpec, Retention
from tocsin.model.types import SqlType

LAST_ONE = DatasetSpec("Last", (Column("n", SqlType("INT")),), retain=Retention(records=1))
NO_CHANNELS: Any = {}


class Meddled(Ledger):
    """A ledger after whose reads something happens."""

    after_read: Callable[[], object] = staticmethod(lambda: None)

    def read(self, work: Callable[[Tx], Any]) -> Any:
        answer = super().read(work)
        self.after_read()
        return answer


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Meddled]:
    with Meddled(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def datasets(tmp_path: Path, ledger: Meddled) -> Iterator[Datasets]:
    made = Datasets(tmp_path / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
    made.open()
    made.create(LAST_ONE)
    yield made
    made.close()


@pytest.fixture
def upkeep(tmp_path: Path, ledger: Meddled, datasets: Datasets) -> Housekeeping:
    results = ResultStore(tmp_path / "results", ledger)
    (tmp_path / "results").mkdir()
    return Housekeeping(ledger, datasets, NO_CHANNELS, results, VirtualClock(0.0), Retention(), interval_s=1.0)


def test_what_a_channel_made_meanwhile_has_yet_to_see_does_not_expire(
    ledger: Meddled, datasets: Datasets, upkeep: Housekeeping
) -> None:
    store = datasets["Last"]
    datasets.insert("Last", [{"n": 1}])

    def create(tx: Tx) -> None:
        channel = catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)
        executions.open_window(tx, channel.id, store.id, store.head)

    def meddle() -> None:
        del ledger.after_read
        ledger.write(create)
        datasets.insert("Last", [{"n": 2}, {"n": 3}, {"n": 4}])

    ledger.after_read = meddle
    upkeep._tidy_dataset("Last")
    assert store.new(1, 4).column("n").to_pylist() == [2, 3, 4]


def test_a_round_notes_how_far_datasets_have_come_and_sweeps(
    tmp_path: Path, ledger: Meddled, datasets: Datasets, upkeep: Housekeeping
) -> None:
    datasets.insert("Last", [{"n": 1}, {"n": 2}])
    left = tmp_path / "results" / "77"
    left.mkdir()
    upkeep.round()
    assert ledger.read(lambda tx: tx.rows("SELECT head FROM dataset_progress WHERE head > 0")) == [(2,)]
    assert not left.exists()
