"""What channels decide without Spark: the columns of what they read."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tocsin.clock import VirtualClock
from tocsin.compiler.channel import CompileOptions
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.storage import faults
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.matching.maintain import CompactionRule
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType

NONE: Any = None
INT = SqlType("INT")


def test_two_columns_that_are_added_at_once_are_both_there(tmp_path: Path) -> None:
    """The second is measured against the dataset that has the first."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        datasets = Datasets(tmp_path / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
        datasets.open()
        datasets.create(DatasetSpec("Reports", (Column("n", INT),)))
        channels = Channels(
            tmp_path, ledger, datasets, NONE, NONE, VirtualClock(0.0), CompileOptions(), 1.0, CompactionRule(1)
        )
        second = threading.Thread(target=channels.add_column, args=("Reports", Column("b", INT)))

        def begin_second(point: str) -> None:
            if point == "schema.before-switch" and not second.ident:
                second.start()

        faults.install(begin_second)
        try:
            channels.add_column("Reports", Column("a", INT))
            second.join()
        finally:
            faults.install(None)
        assert [c.name for c in datasets["Reports"].spec.columns] == ["n", "a", "b"]
        datasets.close()
