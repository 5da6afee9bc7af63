"""What SHOW prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.showing import Showing
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.errors import NotFound
from tocsin.language.statements import Shown
from tocsin.model.catalog import Column, DatasetSpec
from tocsin.model.types import SqlType
from tocsin.tokens import LOCAL_ADMIN

NONE: Any = None


@pytest.mark.parametrize(("bad", "shown", "is_cut"), [(1000, 1000, False), (1001, 1000, True)])
def test_a_list_that_is_cut_says_so(tmp_path: Path, bad: int, shown: int, is_cut: bool) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        datasets = Datasets(tmp_path / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
        datasets.open()
        datasets.create(DatasetSpec("Reports", (Column("n", SqlType("INT")),)))
        datasets.ingest("Reports", b'{"n": "one"}\n' * bad, None)
        answer = Showing(ledger, datasets, NONE, NONE, NONE, NONE, NONE, NONE, NONE).show(
            Shown.DEAD_LETTERS, None, LOCAL_ADMIN
        )
        datasets.close()
    assert (len(answer.rows), answer.is_truncated) == (shown, is_cut)


def test_dead_letters_of_what_never_was_are_not_none(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        datasets = Datasets(tmp_path / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
        datasets.open()
        datasets.create(DatasetSpec("Reports", (Column("n", SqlType("INT")),)))
        datasets.create(DatasetSpec("Gone", (Column("n", SqlType("INT")),)))
        datasets.ingest("Gone", b'{"n": "one"}', None)
        datasets.drop("Gone", list)
        showing = Showing(ledger, datasets, NONE, NONE, NONE, NONE, NONE, NONE, NONE)
        found = [len(showing.show(Shown.DEAD_LETTERS, name, LOCAL_ADMIN).rows) for name in ("reports", "gone")]
        with pytest.raises(NotFound, match="did you mean 'Reports'"):
            showing.show(Shown.DEAD_LETTERS, "Report", LOCAL_ADMIN)
        datasets.close()
    assert found == [0, 1]


def test_dead_letters_have_times_as_everything_in_json(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        datasets = Datasets(tmp_path / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
        datasets.open()
        datasets.create(DatasetSpec("Reports", (Column("n", SqlType("INT")),)))
        datasets.ingest("Reports", b'{"n": "one"}', None)
        showing = Showing(ledger, datasets, NONE, NONE, NONE, NONE, NONE, NONE, NONE)
        answer = showing.show(Shown.DEAD_LETTERS, None, LOCAL_ADMIN)
        datasets.close()
    assert answer.columns[-1] == "at"
    assert [row[-1] for row in answer.rows] == ["1970-01-01T00:00:00Z"]
