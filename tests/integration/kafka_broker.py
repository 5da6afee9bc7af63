"""A real Kafka broker on loopback, from the jars that ``kafka/fetch`` puts into ``.jars/broker``."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

JARS = Path(__file__).parents[2] / ".jars" / "broker"
_READY_S = 60.0


def missing() -> str | None:
    """Why no broker can be started here, or ``None``."""
    if not list(JARS.glob("kafka_2.13-*.jar")):
        why = "mvn, which fetches them, is not there" if shutil.which("mvn") is None else "run kafka/fetch first"
        return f"the Kafka broker's jars are not in .jars/broker; {why}"
    return None if shutil.which("java") else "no java on the path"


@contextlib.contextmanager
def kafka_broker() -> Iterator[str]:
    """``host:port`` of a fresh broker that serves; stopped and deleted at the end."""
    home = Path(tempfile.mkdtemp(prefix="tocsin-kafka-"))
    port, controller = free_port(), free_port()
    try:
        _configure(home, port, controller)
        with (home / "out").open("wb") as out:
            process = subprocess.Popen(_java("kafka.Kafka", str(home / "server.properties")), stdout=out, stderr=out)
        try:
            _await_ready(process, port, home / "out")
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _configure(home: Path, port: int, controller: int) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(home / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    properties = home / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    command = _java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties))
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def _java(main: str, *arguments: str) -> list[str]:
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", main, *arguments]


def _await_ready(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the Kafka broker ended with {process.returncode}: {out.read_text()[-2000:]}")
        if _serves(port):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the Kafka broker did not serve within {_READY_S:.0f} s: {out.read_text()[-2000:]}")


def _serves(port: int) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=5)
    except (OSError, KafkaException):
        return False
    return True
