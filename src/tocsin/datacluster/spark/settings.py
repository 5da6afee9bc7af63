"""What a Spark session of ours is set to, and why; plain values, no Spark needed.

``settings(options)`` starts from the table below, adds what depends on the master, and lets the
user's own ``conf`` win over both. The groups:

* **Latency of a tick.** Adaptive execution re-plans between stages and costs more than a small tick;
  as many shuffle partitions as cores; the JVM and its Python workers talk over Unix sockets (on
  loopback TCP, delayed acknowledgements add 40 ms a tick); workers are kept; the raw local file
  system writes no ``.crc`` twins; a task does not wait for a "better" host.
* **Isolation.** ANSI mode is off: with it, one record whose cast overflows or whose divisor is zero
  fails the job, hence every subscription of every channel that shares the job, and again on each
  retry. Without it the expression is NULL and that record does not match. Jobs of feeds, channels
  and queries, each in a pool of its own, share the cores fairly instead of queueing behind each other.
* **A long life.** The status store keeps little, so that a driver that runs for months does not grow.
* **Quiet.** No web pages, no progress bar; log lines go to a file (see ``session``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_REMOTE_PARTITIONS = 16

_FIXED: Mapping[str, str] = {
    # latency
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
    "spark.locality.wait": "0s",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # isolation, and one meaning of time everywhere
    "spark.sql.ansi.enabled": "false",
    "spark.sql.variable.substitute": "false",  # a text of a user with ${env:...} in it stays that text
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    "spark.task.reaper.enabled": "true",  # a remote executor whose cancelled task does not end is replaced
    "spark.task.reaper.killTimeout": "60s",
    "spark.sql.catalogImplementation": "in-memory",
    # a long life
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "8",
    "spark.sql.streaming.ui.retainedProgressUpdates": "8",
    "spark.sql.streaming.ui.retainedQueries": "8",
    "spark.cleaner.periodicGC.interval": "10min",
    # quiet
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.structuredLogging.enabled": "false",
}

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How to start Spark.

    ``conf`` wins over our own settings. ``log_dir`` receives ``spark.log`` (warnings and errors) and
    ``spark.out`` (what the JVM prints outside its log); without one they go to a temporary directory
    that ``stop_session`` removes.
    """

    master: str = "local[*]"
    driver_memory: str = "2g"
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[Path] = ()
    app_name: str = "tocsin"
    log_dir: Path | None = None
    exit_wait_s: float = 20.0  # for the JVM to end at a stop before it is killed

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_loopback(self) -> bool:
        """Driver and executors are all on this machine."""
        return self.is_local or urlsplit(self.master).hostname in _LOOPBACK


def cores_of(master: str, available: int | None = None) -> int | None:
    """Cores of a local master; ``None`` for a cluster, whose size the driver learns only later."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?])?", master)
    if not found:
        return None
    return (available or os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def settings(options: SparkOptions, log_dir: Path, log4j: Path) -> dict[str, str]:
    """Every setting of the session, the user's last."""
    logging = _java_options({"log4j2.configurationFile": log4j, "tocsin.spark.log": log_dir / "spark.log"})
    return {
        **_FIXED,
        "spark.master": options.master,
        "spark.app.name": options.app_name,
        "spark.driver.memory": options.driver_memory,
        "spark.sql.shuffle.partitions": str(cores_of(options.master) or _REMOTE_PARTITIONS),
        "spark.sql.warehouse.dir": (log_dir / "warehouse").as_uri(),
        "spark.python.unix.domain.socket.enabled": "false" if os.name == "nt" else "true",
        "spark.driver.defaultJavaOptions": f"-XX:+UseParallelGC {logging}",
        "spark.executor.defaultJavaOptions": "-XX:+UseParallelGC",
        **(_ON_LOOPBACK if options.is_loopback else {}),
        **({"spark.jars": ",".join(jar.resolve().as_uri() for jar in options.jars)} if options.jars else {}),
        **options.conf,
    }


_ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _java_options(properties: Mapping[str, Path]) -> str:
    return " ".join(f'"-D{name}={value}"' for name, value in properties.items())
