"""Brokers and the coordinator as processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from support.processes import free_port
from tocsin.tokens import ensure_secret, mint

READY_S = 60.0
GONE_S = 30.0


class Program:
    """``tocsin NAME`` with its own port; all of a data directory share its secret."""

    def __init__(self, kind: str, data_dir: Path, name: str | None = None, port: int = 0, **settings: str) -> None:
        self.name, self.port = name or kind, port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = data_dir / f"{self.name}.log"
        chosen = {f"{kind}.port": str(self.port), "log.level": "info"}
        chosen |= {key.replace("__", "."): value for key, value in settings.items()}
        command = [sys.executable, "-m", "tocsin.cli.main", kind, f"--data-dir={data_dir}"]
        command += [f"--name={name}"] if name else []
        command += [f"--set={key}={value}" for key, value in chosen.items()]
        ensure_secret(data_dir / "secret")
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        with httpx.Client(base_url=self.url, timeout=5, trust_env=False) as http:
            while time.monotonic() < deadline:
                if self._process.poll() is not None:
                    raise AssertionError(f"{self.name} ended with {self._process.returncode}:\n{self.log[-4000:]}")
                if _is_ready(http):
                    return
                time.sleep(0.05)
        raise AssertionError(f"{self.name} was not ready within {READY_S:.0f} s:\n{self.log[-4000:]}")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """Ask it to end; gives its exit code."""
        if self._process.poll() is None:
            self.terminate()
        return self._process.wait(GONE_S)


def token(data_dir: Path, subject: str, *capabilities: str) -> str:
    return mint(ensure_secret(data_dir / "secret"), subject, capabilities, 3600)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False
