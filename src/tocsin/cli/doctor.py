"""``tocsin doctor``: does this machine have what a cluster needs?"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from tocsin import java, tokens
from tocsin.cli.http import connect
from tocsin.cli.options import ConfigFile, DataDir, Json, Sets, settings
from tocsin.cli.output import print_json, print_table
from tocsin.cli.version import package_version
from tocsin.config import Config
from tocsin.errors import TocsinError, Unavailable
from tocsin.units import format_size

LOW_DISK_BYTES = 2 * 10**9
_CLUSTER_PARTS = ("pyspark", "pyarrow", "numba", "sqlglot", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Finding:
    """``state`` is ``ok``, ``warning`` or ``problem``."""

    what: str
    state: str
    finding: str


def doctor(config: ConfigFile = None, data_dir: DataDir = None, as_json: Json = False, sets: Sets = None) -> None:
    """Check Python, Java, Spark, the port, the data directory, the secret and the disk.

    Exits with 1 if something stands in the way of [bold]tocsin cluster[/bold].
    """
    findings = examine(settings(config, sets, {"cluster.data_dir": data_dir}).config)
    if as_json:
        print_json([asdict(f) for f in findings])
    else:
        print_table(["what", "state", "finding"], [(f.what, f.state, f.finding) for f in findings])
    if any(f.state == "problem" for f in findings):
        raise typer.Exit(1)


def examine(config: Config) -> list[Finding]:
    """All findings, in the order in which they would stop a start."""
    checks: dict[str, Callable[[Config], tuple[str, str]]] = {
        "Python": _python,
        "packages": _packages,
        "Java": _java,
        "data directory": _data_dir,
        "secret": _secret,
        "disk": _disk,
        "port": check_port,
    }
    return [Finding(what, *check(config)) for what, check in checks.items()]


def _python(_: Config) -> tuple[str, str]:
    state = "ok" if sys.version_info >= (3, 11) else "problem"
    return state, f"{platform.python_version()} (3.11 or later is needed)"


def _packages(_: Config) -> tuple[str, str]:
    missing = [name for name in _CLUSTER_PARTS if package_version(name) is None]
    if missing:
        return "problem", f"missing: {', '.join(missing)}; run: pip install 'tocsin[cluster]'"
    return "ok", f"PySpark {package_version('pyspark')}, PyArrow {package_version('pyarrow')}"


def _java(_: Config) -> tuple[str, str]:
    try:
        found = java.find()
    except Unavailable as problem:
        return "problem", str(problem)
    return "ok", f"Java {found.version} in {found.home} (by {found.found_by})"


def _data_dir(config: Config) -> tuple[str, str]:
    path = _existing(config.data_dir)
    if not path.is_dir():
        return "problem", f"{path} is not a directory"
    if not os.access(path, os.W_OK | os.X_OK):
        return "problem", f"{path} cannot be written"
    return "ok", f"{config.data_dir}{'' if config.data_dir.exists() else ', created at the first start'}"


def _secret(config: Config) -> tuple[str, str]:
    path = config.secret_path
    if not path.exists():
        return "ok", f"{path}, created at the first start"
    try:
        tokens.read_secret(path)
    except Unavailable as problem:
        return "problem", str(problem)
    return "ok", str(path)


def _disk(config: Config) -> tuple[str, str]:
    free = shutil.disk_usage(_existing(config.data_dir)).free
    state = "ok" if free >= LOW_DISK_BYTES else "warning"
    return state, f"{free / 1e9:.1f} GB free (at least {format_size(LOW_DISK_BYTES)} is comfortable)"


def check_port(config: Config) -> tuple[str, str]:
    """Whether the cluster can listen where it should, or who does already."""
    host, port = config.cluster.host, config.cluster.port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return _occupant(config, f"{host}, port {port}: {error.strerror or error}")
    return "ok", f"{host}, port {port} is free"


def _occupant(config: Config, refusal: str) -> tuple[str, str]:
    try:
        with connect(config, None, None) as client:
            found = client.get("/version")
        host, port = config.cluster.host, config.cluster.port
        return "warning", f"{host}, port {port} is in use: {found['name']} {found['version']} runs there already"
    except (TocsinError, KeyError, TypeError):
        return "problem", refusal


def _existing(path: Path) -> Path:
    """The path, or the nearest parent that exists."""
    return next((p for p in (path.absolute(), *path.absolute().parents) if p.exists()), Path("/"))
