"""``tocsin cluster`` as a process of its own, with everything that it starts, and ways to kill it.

The program runs in a session of its own, so its JVM and its Python workers are found by that session,
even those that made a process group for themselves or lost their parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

READY_S = 240.0
GONE_S = 60.0
_SETTINGS = {"cluster.driver_memory": "512m", "cluster.master": "local[2]", "log.level": "warning"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ClusterProcess:
    """One life of the program; make another for the next."""

    def __init__(self, data_dir: Path, port: int, **settings: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = data_dir.with_name(data_dir.name + ".log")
        chosen = _SETTINGS | {name.replace("__", "."): value for name, value in settings.items()}
        sets = [f"--set={name}={value}" for name, value in chosen.items()]
        command = [sys.executable, "-m", "tocsin.cli.main", "cluster", "--insecure"]
        command += [f"--data-dir={data_dir}", f"--port={port}", *sets]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What the program wrote, in this life and those before."""
        return self._log.read_text(errors="replace")

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        with httpx.Client(base_url=self.url, timeout=5, trust_env=False) as http:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    raise AssertionError(f"the cluster ended with {self._process.returncode}:\n{self.log[-4000:]}")
                if _is_ready(http):
                    return
                time.sleep(0.1)
        raise AssertionError(f"the cluster was not ready within {READY_S:.0f} s:\n{self.log[-4000:]}")

    def members(self) -> list[int]:
        """Every living process of the session."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _session(pid) == self.pid]

    def kill(self) -> int:
        """``kill -9`` for the program, its JVM and all workers; gives how many there were."""
        killed = {self.pid}
        _kill(self.pid)
        while members := self.members():
            for pid in members:
                _kill(pid)
            killed.update(members)
            self._process.poll()
            time.sleep(0.01)
        self._process.wait()
        return len(killed)

    def kill_program(self) -> None:
        """``kill -9`` for the program alone; returns when all that it started has gone by itself."""
        _kill(self.pid)
        self._process.wait()
        deadline = time.monotonic() + GONE_S
        while left := self.members():
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{len(left)} processes outlived the program by {GONE_S:.0f} s")
            time.sleep(0.05)

    def stop(self) -> int:
        """Ask it to end; gives its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(GONE_S)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _session(pid: int) -> int | None:
    """The session of a process that lives, as it stands after the name in ``/proc/<pid>/stat``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[3]) if fields[0] not in "ZX" else None
