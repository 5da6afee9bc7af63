"""What CREATE FEED refuses before Spark is asked for anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tocsin.clock import VirtualClock
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.feeding import Feeding
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.errors import BadArgument, Refused, TocsinError
from tocsin.model.catalog import Column, DatasetSpec, FeedSpec
from tocsin.model.types import SqlType

NO_SPARK: Any = None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "open" / "inbox").mkdir(parents=True)
    (tmp_path / "open" / "away").symlink_to(tmp_path)
    return tmp_path


@pytest.fixture
def datasets(root: Path) -> Iterator[Datasets]:
    with Ledger(root / "ledger.db") as ledger:
        made = Datasets(root / "datasets", ledger, VirtualClock(0.0), StoreOptions(), 1000)
        made.open()
        made.create(DatasetSpec("Reports", (Column("n", SqlType("INT")),)))
        yield made
        made.close()


def feeding(datasets: Datasets, root: Path, load_root: Path | None) -> Feeding:
    return Feeding(root / "feeds", datasets._ledger, datasets, NO_SPARK, VirtualClock(0.0), load_root)


def directory_feed(path: str, dataset: str = "Reports") -> FeedSpec:
    return FeedSpec("f", dataset, "directory", (("path", path),))


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        pytest.param("../datasets", Refused, "outside cluster.load_dir", id="above"),
        pytest.param("/etc", Refused, "outside cluster.load_dir", id="elsewhere"),
        pytest.param("away/datasets", Refused, "outside cluster.load_dir", id="by a link"),
        pytest.param("missing", BadArgument, "a directory that exists on the server, got .*open/missing", id="missing"),
    ],
)
def test_a_directory_is_looked_for_below_load_dir(
    datasets: Datasets, root: Path, path: str, kind: type[TocsinError], words: str
) -> None:
    feeds = feeding(datasets, root, root / "open")
    with pytest.raises(kind, match=words):
        feeds.create(directory_feed(path))
    assert feeds.views() == []


def test_without_load_dir_there_are_no_directory_feeds(datasets: Datasets, root: Path) -> None:
    with pytest.raises(Refused, match=r"switched off; set cluster\.load_dir"):
        feeding(datasets, root, None).create(directory_feed("inbox"))


def test_what_spark_reads_is_absolute_and_what_is_kept_is_as_declared(datasets: Datasets, root: Path) -> None:
    feeds = feeding(datasets, root, root / "open")
    resolved = feeds._resolved(directory_feed("inbox"))
    assert dict(resolved.options)["path"] == str((root / "open" / "inbox").resolve())


def test_no_feed_goes_into_the_dead_letters(datasets: Datasets, root: Path) -> None:
    with pytest.raises(BadArgument, match="the cluster alone"):
        feeding(datasets, root, root / "open").create(directory_feed("inbox", "DeadLetters"))
