"""The demonstration's own cluster: a process of its own in a directory made fresh for it.

::

    .demo/tocsin.toml    its settings; other commands reach it with --config
    .demo/cluster.log    what it says
    .demo/data/          what it keeps

Settings of the surroundings (``TOCSIN_…``, a ``tocsin.toml`` nearby) do not reach it. A directory that
holds anything else, or a cluster that still runs, is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from tocsin.errors import Unavailable
from tocsin.system.ports import LOOPBACK, free_port
from tocsin.system.process import PROGRAM, Process, without_settings

COMMAND = (*PROGRAM, "cluster")
FILES = frozenset({"tocsin.toml", "cluster.log", "data"})


class ClusterProcess(Process):
    """One ``tocsin cluster``; ``stop`` it, or let it go on."""

    def __init__(self, root: Path, command: Sequence[str] = COMMAND) -> None:
        make_fresh(root)
        self.root, self.config_path = root, root / "tocsin.toml"
        self.config_path.write_text(_settings(root / "data", port := free_port()))
        super().__init__(
            "cluster",
            [*command, "--config", str(self.config_path)],
            f"http://{LOOPBACK}:{port}",
            log=root / "cluster.log",
            environ=without_settings(os.environ),
        )


def make_fresh(root: Path) -> None:
    """An empty directory in place of an earlier demonstration's."""
    if root.exists():
        strange = sorted({path.name for path in root.iterdir()} - FILES) if root.is_dir() else ["a file"]
        if strange:
            found = ", ".join(strange[:3])
            raise Unavailable(f"{root} is not from an earlier demonstration (it holds {found}); name another --dir")
        _refuse_running(root)
        shutil.rmtree(root)
    root.mkdir(parents=True)


def _refuse_running(root: Path) -> None:
    """Whoever holds the lock of the data directory has written its process id into it."""
    lock = root / "data" / "lock"
    if lock.exists() and (pid := _holder(lock)):
        raise Unavailable(f"the cluster of an earlier demonstration still runs in {root}; stop it with: kill {pid}")


def _holder(lock: Path) -> str | None:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip() or "its process id"
    return None


def _settings(data: Path, port: int) -> str:
    return (
        "[cluster]\n"
        f"data_dir = {json.dumps(str(data.absolute()))}\n"
        f'host = "{LOOPBACK}"\n'
        f"port = {port}\n"
        'driver_memory = "1g"\n'
    )
