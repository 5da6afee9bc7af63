"""Starting and stopping the one Spark session of a process.

Spark's launcher and JVM write to the terminal before any log setting can stop them, so the JVM is
launched here with its output sent to ``spark.out``; if it does not come up, the end of that file is
in the error. ``stop_session`` ends the JVM as well, so that the next session of the same process can
have other jars or another heap.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tocsin.datacluster.spark.settings import SparkOptions, settings
from tocsin.errors import TocsinError, Unavailable

__all__ = [
    "SPARK_IS_GONE", "SparkOptions", "jvm_is_alive", "jvm_pid", "needing_spark", "spark_answers",
    "start_session", "stop_session", "wait_for_jvm",
]  # fmt: skip

_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOG_DIR_KEY = "spark.tocsin.logDir"
_OWNED_KEY = "spark.tocsin.logDirIsTemporary"
_STACKS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # print what is also raised

SPARK_IS_GONE = (
    "Spark's Java process has ended, and the cluster stops with it; nothing is lost, start it again "
    "(spark.out and spark.log in the data directory may say why; a heap that is too small is cluster.driver_memory)"
)


def start_session(options: SparkOptions | None = None) -> SparkSession:
    """A new session; Unavailable if there is no Java, Spark does not start, or one runs already."""
    options = options or SparkOptions()
    _check_possible()
    log_dir = _log_dir(options)
    conf = SparkConf(loadDefaults=False).setAll(list(settings(options, log_dir, _LOG4J).items()))
    conf.set(_LOG_DIR_KEY, str(log_dir)).set(_OWNED_KEY, str(options.log_dir is None))
    os.environ["PYSPARK_PYTHON"] = _python(options)
    for name in _STACKS:
        PySparkLogger.getLogger(name).disabled = True
    try:
        gateway = _launch(conf, log_dir)
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (PySparkRuntimeError, Py4JError) as failure:
        _end_jvm(options.exit_wait_s)
        problem = Unavailable(f"Spark did not start on {options.master!r}: {_why(failure, log_dir)}")
        if options.log_dir is None:
            shutil.rmtree(log_dir, ignore_errors=True)
        raise problem from None


def stop_session(spark: SparkSession, exit_wait_s: float = 20.0) -> None:
    """Stop the session and its JVM, which is killed if it has not ended then; harmless if it has died already."""
    log_dir: str | None = None
    owned: str | None = "False"
    with contextlib.suppress(Py4JError, OSError):
        log_dir, owned = spark.conf.get(_LOG_DIR_KEY, None), spark.conf.get(_OWNED_KEY, "False")
        spark.stop()
    _end_jvm(exit_wait_s)
    if log_dir and owned == "True":
        shutil.rmtree(log_dir, ignore_errors=True)


def jvm_pid(spark: SparkSession) -> int:
    """The process that Spark's driver runs in."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def jvm_is_alive() -> bool:
    """Whether the process of this process's Spark driver still runs."""
    return _outlives(0.0)


def wait_for_jvm() -> None:
    """Return when the process of this process's Spark driver has ended."""
    _outlives(None)


def spark_answers() -> bool:
    """Whether the JVM can be talked to; one that dies is gone for its peers before it is for its parent."""
    try:
        return SparkContext._jvm is not None and SparkContext._jvm.java.lang.System.nanoTime() is not None
    except (Py4JError, OSError):
        return False


def _outlives(patience_s: float | None) -> bool:
    """Whether the JVM still runs after a while."""
    process = SparkContext._gateway.proc if SparkContext._gateway is not None else None
    if process is None:
        return False
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return True
    return False


@contextlib.contextmanager
def needing_spark() -> Iterator[None]:
    """Whatever fails in here because the JVM is gone is Unavailable; errors of ours are told as they are."""
    try:
        yield
    except (TocsinError, PySparkException, Py4JJavaError):
        raise
    except Exception as problem:
        if spark_answers():
            raise
        raise Unavailable(SPARK_IS_GONE) from problem


def _check_possible() -> None:
    if SparkContext._active_spark_context is not None:
        raise Unavailable("a Spark session runs in this process already; stop it first")
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise Unavailable(f"JAVA_HOME is {home!r}, which has no bin/java; unset it or point it at Java 17 or later")
    if not home and shutil.which("java") is None:
        raise Unavailable("Spark needs Java 17 or later: install it, or set JAVA_HOME")


def _log_dir(options: SparkOptions) -> Path:
    if options.log_dir is None:
        return Path(tempfile.mkdtemp(prefix="tocsin-spark-"))
    options.log_dir.mkdir(parents=True, exist_ok=True)
    return options.log_dir.resolve()


def _python(options: SparkOptions) -> str:
    """The workers' interpreter: ours when they run on this machine, the cluster's own otherwise."""
    chosen = options.conf.get("spark.pyspark.python")
    if chosen or options.is_loopback:
        return chosen or sys.executable
    return os.environ.get("PYSPARK_PYTHON", "python3")


def _launch(conf: SparkConf, log_dir: Path) -> Any:
    with (log_dir / "spark.out").open("wb") as out:
        output = {"stdout": out, "stderr": subprocess.STDOUT}
        return launch_gateway(conf, popen_kwargs=output)  # type: ignore[no-untyped-call]


def _end_jvm(exit_wait_s: float) -> None:
    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None:
        return
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(exit_wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _why(failure: Exception, log_dir: Path) -> str:
    """The lines that name the problem: what the JVM printed without its stack traces, else the failure."""
    out = log_dir / "spark.out"
    lines = out.read_text(errors="replace").splitlines() if out.exists() else []
    told = [line for line in lines if line.strip() and not line.startswith(("\tat ", "WARNING: Using incubator"))]
    return " | ".join(told[-3:]) or str(failure).splitlines()[0]
