from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.datacluster.storage import catalog, executions
from tocsin.datacluster.storage.directory import DataDirectory, Swept
from tocsin.datacluster.storage.executions import ExecutionStats, ResultFile
from tocsin.datacluster.storage.files import make_directory, write_atomically
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.errors import StorageFull, Unavailable
from tocsin.model.catalog import ChannelSpec, DatasetSpec, FeedSpec


def test_a_second_process_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    with DataDirectory(tmp_path), pytest.raises(Unavailable, match=f"in use by process {os.getpid()}; stop it"):
        DataDirectory(tmp_path)
    DataDirectory(tmp_path).close()


def test_the_sweep_deletes_what_the_ledger_does_not_name(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as directory, Ledger(directory.ledger_path) as ledger:
        channel = ledger.write(lambda tx: catalog.create_channel(tx, ChannelSpec("C", (), "q"), 0.0)).id
        dataset = ledger.write(lambda tx: catalog.create_dataset(tx, DatasetSpec("D", ()))).id
        run = ledger.write(lambda tx: executions.begin(tx, channel, {}, 0.0))
        files = [ResultFile(f"{channel}/named.arrow", 1, 1, 1)]
        ledger.write(lambda tx: executions.commit(tx, run, files, ExecutionStats(rows=1), [], 1.0))
        feed = ledger.write(lambda tx: catalog.create_feed(tx, FeedSpec("F", "D", "directory", ()), 0.0)).id
        kept = [
            directory.results_root / str(channel) / "named.arrow",
            directory.dataset(dataset) / "log" / "1.log",
            directory.indexes_root / str(channel) / "abc" / "base",
            directory.feeds_root / str(feed) / "checkpoint",
        ]
        orphans = [
            directory.results_root / str(channel) / "other-attempt.arrow",
            directory.results_root / str(channel) / "half.arrow.tmp",
            directory.results_root / "999" / "dropped-channel.arrow",
            directory.dataset(888) / "dropped-dataset.parquet",
            directory.indexes_root / "999" / "abc" / "base",
            directory.feeds_root / "777" / "checkpoint",
        ]
        for path in (*kept, *orphans):
            make_directory(path.parent)
            path.write_text("12")
        assert directory.sweep(ledger) == Swept(3, 3, 12)
        assert all(path.exists() for path in kept)
        assert not any(path.exists() for path in orphans)
        assert not (directory.results_root / "999").exists()
        assert directory.sweep(ledger) == Swept(0, 0, 0)


@pytest.mark.parametrize("place", ["datasets/1/log/1.log", "results/1/a.arrow"])
@pytest.mark.parametrize("is_emptied", [False, True], ids=["gone", "emptied"])
def test_data_without_their_ledger_stay_and_nothing_starts(tmp_path: Path, place: str, is_emptied: bool) -> None:
    make_directory((tmp_path / place).parent)
    (tmp_path / place).write_text("data")
    if is_emptied:
        (tmp_path / "ledger.db").touch()
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"ledger\.db is missing; restore it or choose another directory"):
            DataDirectory(tmp_path)
    assert (tmp_path / place).read_text() == "data"


def test_a_ledger_that_was_just_made_sweeps_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger, DataDirectory(tmp_path) as directory:
        make_directory(directory.dataset(1))
        (directory.dataset(1) / "a.parquet").write_text("data")
        with pytest.raises(Unavailable, match=r"ledger\.db names none of them; restore it"):
            directory.sweep(ledger)
        assert (directory.dataset(1) / "a.parquet").exists()


def test_other_users_of_the_machine_can_neither_list_nor_read_it(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data") as directory, Ledger(directory.ledger_path) as ledger:
        ledger.write(lambda tx: catalog.create_dataset(tx, DatasetSpec("D", ())))
        private = [directory.root, *directory.root.glob("ledger.db*")]
        assert [path.name for path in private if path.stat().st_mode & 0o077] == []


def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageFull, match="file cannot grow"):
            write_atomically(path, lambda file: file.write(bytes(10_000)), "manifest.before-switch")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_the_sweep_waits_for_the_processes_of_a_former_run(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as directory, Ledger(directory.ledger_path) as ledger:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        directory.note_process(process.pid)
        with pytest.raises(Unavailable, match=f"process {process.pid} of a former run still uses"):
            directory.sweep(ledger, patience_s=0.0)
        process.communicate(b"\n")
        directory.sweep(ledger)
        assert not (tmp_path / "processes").exists()


def test_a_torn_note_of_a_process_holds_nobody_up(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as directory, Ledger(directory.ledger_path) as ledger:
        (tmp_path / "processes").write_bytes(b"123\n\xff\x00 4 5\n77 88 99\n12")
        directory.sweep(ledger, patience_s=0.0)
        assert not (tmp_path / "processes").exists()
