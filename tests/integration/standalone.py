"""A real Spark standalone cluster on loopback, master and worker as processes of their own, from PySpark's wheel."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark

_HOME = Path(pyspark.__file__).parent
_LOOPBACK = "127.0.0.1"
_READY_S = 60.0


@contextlib.contextmanager
def standalone_cluster(cores: int = 2, memory: str = "1g") -> Iterator[str]:
    """The master's URL, once its worker has registered; both are stopped at the end."""
    work = Path(tempfile.mkdtemp(prefix="tocsin-standalone-"))
    port, web = free_port(), free_port()
    url = f"spark://{_LOOPBACK}:{port}"
    master = ("master.Master", "--host", _LOOPBACK, "--port", str(port), "--webui-port", str(web))
    sizes = ("--cores", str(cores), "--memory", memory, "--work-dir", str(work))
    worker = ("worker.Worker", "--host", _LOOPBACK, "--webui-port", str(free_port()), *sizes, url)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        started = [stack.enter_context(_process(work / "master.out", *master))]
        _await(lambda: _serves(port), started, work)
        started.append(stack.enter_context(_process(work / "worker.out", *worker)))
        _await(lambda: _workers(web) == 1, started, work)
        yield url


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _process(out: Path, main: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": _LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    command = [str(_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments]
    with out.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await(is_ready: Callable[[], bool], started: list[subprocess.Popen[bytes]], work: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and all(process.poll() is None for process in started):
        if is_ready():
            return
        time.sleep(0.1)
    told = "\n".join(out.read_text()[-1500:] for out in sorted(work.glob("*.out")))
    raise RuntimeError(f"the standalone cluster did not come up within {_READY_S:.0f} s:\n{told}")


def _serves(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((_LOOPBACK, port), timeout=1):
        return True
    return False


def _workers(web: int) -> int:
    try:
        with urllib.request.urlopen(f"http://{_LOOPBACK}:{web}/json/", timeout=2) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, ValueError, KeyError):
        return 0
