"""The demonstration's own system: processes of their own in a directory made fresh for them.

::

    .demo/tocsin.toml    settings of all; other commands reach them with --config
    .demo/*.log          what they say
    .demo/data/          what they keep

Settings of the surroundings (``TOCSIN_…``, a ``tocsin.toml`` nearby) do not reach them. A directory that
holds anything else, or a cluster that still runs, is left alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from tocsin.errors import Unavailable
from tocsin.system.parts import DASHBOARD, ORIGINS, Addresses, Part, broker_names, parts_of
from tocsin.system.ports import LOOPBACK, free_ports
from tocsin.system.process import PROGRAM, Process, stop_all, without_settings

COMMAND = (*PROGRAM, "cluster")
BROKERS, MAX_BROKERS = 2, 16
LISTED = 100_000  # matches that a notice lists
START_S = 600.0  # for each of them, on a machine that is busy
DASHBOARD_PORT = 8450  # where it is free
_BROKERS = {"broker.drain_timeout": "1s", "broker.max_notice_bytes": "16 MB"}
FILES = frozenset(
    {"tocsin.toml", "cluster.log", "coordinator.log", "dashboard.log", "data", "report.html"}
    | {f"{b}.log" for b in broker_names(MAX_BROKERS)}
)


class ClusterProcess(Process):
    """One ``tocsin cluster``; ``stop`` it, or let it go on."""

    def __init__(self, root: Path, command: Sequence[str] = COMMAND, brokers: int = BROKERS) -> None:
        make_fresh(root)
        self.root, self.config_path = root, root / "tocsin.toml"
        cluster, coordinator, spare, *others, usual = free_ports([0] * (brokers + 3) + [DASHBOARD_PORT])
        named = dict(zip(broker_names(brokers), others, strict=True))
        self.addresses = Addresses(cluster, coordinator, named, dashboard=usual if has_dashboard() else None)
        self.spare = replace(self.addresses, dashboard=spare if has_dashboard() else None)
        origins = [*self.addresses.origins, *self.spare.origins]
        self.config_path.write_text(_settings(root / "data", self.addresses, origins))
        super().__init__(
            "cluster",
            [*command, "--config", str(self.config_path)],
            self.addresses.cluster_url,
            log=root / "cluster.log",
            environ=without_settings(os.environ),
        )


class Servers:
    """Coordinator, brokers and dashboard around a cluster that is ready."""

    def __init__(self, cluster: ClusterProcess, program: Sequence[str] = PROGRAM) -> None:
        self.coordinator_url = cluster.addresses.coordinator_url
        self._cluster, self._program = cluster, program
        self.dashboard_url = cluster.addresses.dashboard_url
        self._parts = self._parts_at(cluster.addresses)
        self._processes: list[Process] = []

    def start(self, on_wait: Callable[[float], None]) -> None:
        for _, stage in groupby(self._parts, key=lambda part: part.stage):
            for process in [self._start(self._with_a_port(part)) for part in stage]:
                process.wait_ready(on_wait, START_S)
        self.check()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def check(self) -> None:
        """Raise if one of them is gone."""
        for process in self._processes:
            process.check()

    def stop(self) -> None:
        """Those who started last end first, the cluster after them."""
        stop_all([*reversed(self._processes), self._cluster])

    def _parts_at(self, addresses: Addresses) -> list[Part]:
        told = {**_BROKERS, ORIGINS: " ".join(self._cluster.spare.origins)}
        return parts_of(self._cluster.root / "data", addresses, told)[1:]

    def _with_a_port(self, part: Part) -> Part:
        """The dashboard's usual port is one that others wish for, too, and Spark took its time to start."""
        wished = self._cluster.addresses.dashboard
        if part.kind != DASHBOARD or wished is None or free_ports([wished]) == [wished]:
            return part
        self.dashboard_url = self._cluster.spare.dashboard_url
        return self._parts_at(self._cluster.spare)[-1]

    def _start(self, part: Part) -> Process:
        log = self._cluster.root / f"{part.name}.log"
        command = part.command(self._cluster.config_path, self._program)
        process = Process(part.name, command, part.url, log=log, environ=without_settings(os.environ))
        self._processes.append(process)
        return process


def has_dashboard() -> bool:
    """Whether what it needs is installed."""
    return find_spec("plotly") is not None


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


def _settings(data: Path, addresses: Addresses, origins: Sequence[str]) -> str:
    return (
        "[cluster]\n"
        f"data_dir = {json.dumps(str(data.absolute()))}\n"
        f'host = "{LOOPBACK}"\n'
        f"port = {addresses.cluster}\n"
        'driver_memory = "1g"\n'
        f"[outbox]\nnotify_max_ids = {LISTED}\n"  # the verdict wants to know what everybody is owed
        f'[client]\ncoordinator = "{addresses.coordinator_url}"\n'
        'command_timeout = "10m"\n'  # a busy machine is no reason to give up
        f'[http]\nallowed_origins = "{" ".join(origins)}"\n'
    )
