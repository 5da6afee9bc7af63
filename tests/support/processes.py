"""Programs of ours as processes of their own, with everything that they start, and ways to kill them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tocsin.system.ports import free_port
from tocsin.system.process import Process
from tocsin.tokens import ensure_secret, mint

__all__ = ["ClusterProcess", "Program", "free_port", "token"]

READY_S = 240.0
GONE_S = 60.0
_SETTINGS = {"cluster.driver_memory": "512m", "cluster.master": "local[2]", "log.level": "warning"}


class _Running(Process):
    """``tocsin KIND``, as the product runs its own processes."""

    def __init__(
        self, kind: str, port: int, log: Path, options: Sequence[str], settings: Mapping[str, str], name: str = ""
    ) -> None:
        chosen = (f"--set={key}={value}" for key, value in settings.items())
        command = [sys.executable, "-m", "tocsin.cli.main", kind, *options, *chosen]
        self.port = port
        super().__init__(name or kind, command, f"http://127.0.0.1:{port}", log=log)

    @property
    def log(self) -> str:
        """What the program wrote, in this life and those before."""
        assert self.log_path is not None
        return self.log_path.read_text(errors="replace")

    def wait_ready(self) -> None:  # type: ignore[override]
        super().wait_ready(timeout_s=READY_S)

    def stop(self) -> int:  # type: ignore[override]
        """Ask it to end; gives its exit code."""
        return super().stop(GONE_S)


class ClusterProcess(_Running):
    """One life of ``tocsin cluster``; make another for the next. Everyone is admin there."""

    def __init__(self, data_dir: Path, port: int, **settings: str) -> None:
        log = data_dir.with_name(data_dir.name + ".log")
        options = ["--insecure", f"--data-dir={data_dir}", f"--port={port}"]
        super().__init__("cluster", port, log, options, _SETTINGS | _dotted(settings))

    def kill_all(self) -> int:
        """``kill -9`` for the program, its JVM and all workers; gives how many there were."""
        count = len(self.members())
        self.kill()
        return count

    def kill_program(self) -> None:
        """``kill -9`` for the program alone; returns when all that it started has gone by itself."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + GONE_S
        while left := self.members():
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{len(left)} processes outlived the program by {GONE_S:.0f} s")
            time.sleep(0.05)


class Program(_Running):
    """A broker or the coordinator with its own port; all of a data directory share its secret."""

    def __init__(self, kind: str, data_dir: Path, name: str | None = None, port: int = 0, **settings: str) -> None:
        ensure_secret(data_dir / "secret")
        port, log = port or free_port(), data_dir / f"{name or kind}.log"
        options = [f"--data-dir={data_dir}", *([f"--name={name}"] if name else [])]
        chosen = {f"{kind}.port": str(port), "log.level": "info"} | _dotted(settings)
        super().__init__(kind, port, log, options, chosen, name or kind)


def token(data_dir: Path, subject: str, *capabilities: str) -> str:
    return mint(ensure_secret(data_dir / "secret"), subject, capabilities, 3600)


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as arguments can be named, with ``__`` for the dot."""
    return {key.replace("__", "."): value for key, value in settings.items()}
