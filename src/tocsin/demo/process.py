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
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from tocsin.errors import Unavailable

COMMAND = (sys.executable, "-m", "tocsin.cli.main", "cluster")
FILES = frozenset({"tocsin.toml", "cluster.log", "data"})
READY_S = 180.0
STOP_S = 30.0
_LOOPBACK = "127.0.0.1"
_SHOWN_LINES = 12


class ClusterProcess:
    """One ``tocsin cluster``; ``stop`` it, or let it go on."""

    def __init__(self, root: Path, command: Sequence[str] = COMMAND) -> None:
        make_fresh(root)
        self.root, self.config_path, self.log_path = root, root / "tocsin.toml", root / "cluster.log"
        self.url = f"http://{_LOOPBACK}:{(port := free_port())}"
        self.config_path.write_text(_settings(root / "data", port))
        with self.log_path.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "--config", str(self.config_path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(os.environ),
                start_new_session=True,  # Ctrl-C is for us; we stop it in order
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, on_wait: Callable[[float], None], timeout_s: float = READY_S) -> None:
        """Return when it takes requests; ``on_wait`` hears how many seconds it has been."""
        began = time.monotonic()
        while not is_ready(self.url):
            waited = time.monotonic() - began
            if (code := self._process.poll()) is not None:
                raise Unavailable(f"the cluster ended with code {code} before it was ready{self._last_words()}")
            if waited > timeout_s:
                raise Unavailable(f"the cluster was not ready after {timeout_s:.0f} s{self._last_words()}")
            on_wait(waited)
            time.sleep(0.2)

    def check(self) -> None:
        """Raise if it is gone."""
        if (code := self._process.poll()) is not None:
            raise Unavailable(f"the cluster ended with code {code}{self._last_words()}")

    def stop(self, timeout_s: float = STOP_S) -> None:
        """Drain it; whatever does not end by itself is killed, and a further Ctrl-C does so at once."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _last_words(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
        return f"; the end of {self.log_path}:\n" + "\n".join(lines) if lines else f"; {self.log_path} is empty"


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


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


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
        f'host = "{_LOOPBACK}"\n'
        f"port = {port}\n"
        'driver_memory = "1g"\n'
    )


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in outer.items() if not name.startswith("TOCSIN_")}
