from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.datacluster.storage import catalog, executions, leftovers
from tocsin.datacluster.storage.executions import ExecutionStats, ResultFile
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.model.catalog import ChannelSpec


@pytest.fixture
def channel(ledger: Ledger) -> int:
    return ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id


def make(root: Path, channel: int, *names: str) -> None:
    (root / str(channel)).mkdir(parents=True, exist_ok=True)
    for name in names:
        (root / str(channel) / name).write_text("x")


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.glob("*/*"))


def test_the_files_of_a_dropped_channel_go(tmp_path: Path, ledger: Ledger, channel: int) -> None:
    make(tmp_path, channel, f"{1:012x}-1-a.arrow")
    ledger.write(lambda tx: catalog.drop_channel(tx, "C"))
    assert leftovers.sweep(tmp_path, ledger) == 1
    assert not (tmp_path / str(channel)).exists()


def test_what_is_being_written_stays_and_what_failed_before_goes(tmp_path: Path, ledger: Ledger, channel: int) -> None:
    for _ in range(3):
        ledger.write(lambda tx: executions.begin(tx, channel, {}, 0.0))
    make(tmp_path, channel, *(f"{1:012x}-{attempt}-a.arrow" for attempt in (1, 2, 3, 4)), f"{1:012x}-2-b.arrow.tmp")
    assert leftovers.sweep(tmp_path, ledger) == 3
    assert left(tmp_path) == [f"{channel}/{1:012x}-3-a.arrow", f"{channel}/{1:012x}-4-a.arrow"]


def test_after_the_commit_only_what_is_named_stays(tmp_path: Path, ledger: Ledger, channel: int) -> None:
    run = ledger.write(lambda tx: executions.begin(tx, channel, {}, 0.0))
    named, other, ahead = f"{1:012x}-1-a.arrow", f"{1:012x}-1-b.arrow", f"{2:012x}-1-a.arrow"
    make(tmp_path, channel, named, other, ahead, "foreign")
    files = [ResultFile(f"{channel}/{named}", 1, 1, 1)]
    assert leftovers.sweep(tmp_path, ledger) == 0
    ledger.write(lambda tx: executions.commit(tx, run, files, ExecutionStats(rows=1), [], 1.0))
    assert leftovers.sweep(tmp_path, ledger) == 1
    assert left(tmp_path) == sorted(f"{channel}/{name}" for name in (named, ahead, "foreign"))
