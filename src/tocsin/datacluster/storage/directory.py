"""The data directory of one cluster: where things lie, its lock, and the sweep at start.

::

    lock            held by the running process
    processes       those that it started and that write here
    ledger.db       the commit point
    datasets/<id>/  one directory a dataset
    results/<id>/   one directory a channel; file names carry execution and attempt
    indexes/<id>/   one directory a channel, made again from the ledger where it is missing
    feeds/<id>/     one directory a feed: how far its source was read

Everything that the ledger does not name is left over from a kill and deleted at start, once the
processes of the killed run are gone: until then they may still write. Without the ledger nobody knows what
is left over: where data lie and their ledger does not, nothing is deleted and nothing starts.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.files import TEMPORARY, make_directory, sync_directory
from tocsin.datacluster.storage.transaction import Transactions, Tx
from tocsin.errors import Unavailable

_GONE = "gone"
_NOTED = re.compile(r"^([0-9]+) (\w+)$", re.MULTILINE)  # a line that a crash tore speaks of nobody who lives
__all__ = ["DataDirectory", "Swept", "sync_directory"]


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep deleted."""

    result_files: int
    directories: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Known:
    """What the ledger names: result files by path, the others by number."""

    files: set[str]
    channels: set[str]
    datasets: set[str]
    feeds: set[str]


class DataDirectory:
    """Holds the lock of ``root`` until closed; ``Unavailable`` names the process that has it."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        make_directory(self.root, 0o700)
        self._lock = _locked(self.root / "lock")
        try:
            self._check_ledger()
        except Unavailable:
            self.close()
            raise
        make_directory(self.datasets_root)
        make_directory(self.results_root)

    @property
    def ledger_path(self) -> Path:
        return self.root / "ledger.db"

    @property
    def datasets_root(self) -> Path:
        return self.root / "datasets"

    @property
    def results_root(self) -> Path:
        return self.root / "results"

    @property
    def indexes_root(self) -> Path:
        return self.root / "indexes"

    @property
    def feeds_root(self) -> Path:
        return self.root / "feeds"

    def dataset(self, dataset_id: int) -> Path:
        return self.datasets_root / str(dataset_id)

    def note_process(self, pid: int) -> None:
        """Remember a process that this one started and that writes here."""
        with (self.root / "processes").open("a") as file:
            file.write(f"{pid} {_started_at(pid)}\n")

    def sweep(self, ledger: Transactions, patience_s: float = 30.0) -> Swept:
        """Delete what no row of the ledger names. Call it before anything writes."""
        self._await_former(patience_s)
        known = ledger.read(_known)
        if not known.channels and not known.datasets:
            self._refuse_data("names none of them")
        files = size = 0
        for path in [p for p in self.results_root.glob("*/*") if f"{p.parent.name}/{p.name}" not in known.files]:
            files, size = files + 1, size + path.stat().st_size
            path.unlink()
        for directory in _others(self.results_root, known.channels):
            shutil.rmtree(directory)
        dropped = _others(self.datasets_root, known.datasets)
        dropped += _others(self.indexes_root, known.channels) + _others(self.feeds_root, known.feeds)
        for directory in dropped:
            size += sum(p.stat().st_size for p in directory.rglob("*") if p.is_file())
            shutil.rmtree(directory)
        for path in self.root.glob(f"*{TEMPORARY}"):
            path.unlink()
        return Swept(files, len(dropped), size)

    def _check_ledger(self) -> None:
        """A new ledger is made only where there are no data yet."""
        if not self.ledger_path.exists() or not self.ledger_path.stat().st_size:
            self._refuse_data("is missing")

    def _refuse_data(self, what: str) -> None:
        for root in (self.datasets_root, self.results_root):
            if any(path.is_file() for path in root.rglob("*")):
                raise Unavailable(
                    f"{root} holds data, but their ledger {self.ledger_path} {what}; "
                    "restore it or choose another directory"
                )

    def _await_former(self, patience_s: float) -> None:
        """Wait until the processes that a former run noted are gone."""
        path = self.root / "processes"
        noted = _NOTED.findall(path.read_text(errors="replace")) if path.exists() else []
        deadline = time.monotonic() + patience_s
        while alive := [pid for pid, started in noted if _started_at(int(pid)) == started != _GONE]:
            if time.monotonic() > deadline:
                raise Unavailable(f"process {alive[0]} of a former run still uses {self.root}; stop it")
            time.sleep(0.05)
        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let the lock go."""
        os.close(self._lock)

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 32).decode().strip() or "unknown"
        os.close(handle)
        raise Unavailable(
            f"the data directory {path.parent} is in use by process {holder}; stop it or choose another directory"
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _started_at(pid: int) -> str:
    """When a process started, as the system counts, so that a reused number is told apart."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except OSError:
        return _GONE
    return "unknown"


def _known(tx: Tx) -> _Known:
    return _Known(
        {path for (path,) in tx.rows("SELECT path FROM result_file")},
        {str(row.id) for row in catalog.list_channels(tx)},
        {str(row.id) for row in catalog.list_datasets(tx)},
        {str(row.id) for row in catalog.list_feeds(tx)},
    )


def _others(root: Path, known: set[str]) -> list[Path]:
    paths = root.iterdir() if root.is_dir() else ()
    return [path for path in paths if path.is_dir() and path.name not in known]
