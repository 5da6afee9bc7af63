"""Settings of a broker: its address, its limits, and how it treats slow subscribers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.config.checks import is_loopback, ordered
from tocsin.settings.declare import Bytes, Seconds, choice, duration, flag, integer, number, size, text


@dataclass(frozen=True, slots=True)
class Broker:
    name: str = text(
        "broker_1",
        "Name of this broker, its own among all brokers of a system.",
        pattern=r"[A-Za-z_][A-Za-z0-9_]{0,62}",
        expected="up to 63 letters, digits and underscores, not first a digit",
    )
    host: str = text("127.0.0.1", "Address the broker binds.", pattern=r"\S+", expected="a host name or address")
    port: int = integer(
        8430, "The broker's one port, for WebSocket, SSE and HTTP; 0 takes a free one.", low=0, high=65535
    )
    url: str = text(
        "",
        "Address that others reach the broker at; empty means `http://host:port`, https with TLS.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    insecure: bool = flag(False, "Everyone may do everything without a token; allowed on loopback only.")
    cluster: str = text(
        "",
        "Address of the data cluster; empty for a broker of topics alone.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    coordinator: str = text(
        "",
        "Address of the coordinator; empty for a broker that is alone.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    location: str = text(
        "",
        "Where the broker stands, for placement by distance: `x, y` in metres or `longitude, latitude`.",
        pattern=r"(-?\d+(\.\d+)? *, *-?\d+(\.\d+)?)?",
        expected="two numbers with a comma between them",
    )
    capacity: str = text(
        "",
        "Load that the broker can carry, in bytes a second; empty leaves it open.",
        pattern=r"(\d+(\.\d+)?)?",
        expected="a number",
    )
    tick: Seconds = duration(
        "2ms", "Under load, notifications wait so long for others to leave with them.", low="0ms", high="1s"
    )
    write_buffer: Bytes = size(
        "64 kB", "Bytes that a slow or returning connection is given before it has to read.", low="1 kB", high="64 MB"
    )
    outbox_bytes: Bytes = size(
        "256 kB", "Bytes that wait for a slow connection; beyond it the backlog is shed.", low="1 kB", high="1 GB"
    )
    outbox_hard_bytes: Bytes = size(
        "4 MB",
        "Bytes waiting for a slow connection, with those shed since it last was up to date; beyond it, it is closed.",
        low="1 kB",
        high="100 GB",
    )
    peer_outbox_bytes: Bytes = size(
        "64 MB",
        "Bytes that wait for another broker; none are shed, and beyond it the connection is closed, and resumed.",
        low="1 kB",
        high="100 GB",
    )
    shedding: str = choice("oldest", ("oldest",), "Which notifications a slow connection does without.")
    cache_bytes: Bytes = size(
        "64 MB", "Bytes of recent notifications kept for those who come back.", low="0 B", high="1 TB"
    )
    replays: int = integer(64, "Reads of a stream's past under way at once.", low=1, high=10_000)
    retry_pause: Seconds = duration("1s", "Pause before a read of a stream's past is tried again.", high="10m")
    max_message_bytes: Bytes = size("256 kB", "Longest message of a client.", low="1 kB", high="64 MB")
    max_notice_bytes: Bytes = size("1 MB", "Longest notice of the data cluster.", low="1 kB", high="1 GB")
    max_head_bytes: Bytes = size(
        "32 kB", "Longest head of a request that opens a WebSocket or an event stream.", low="1 kB", high="1 MB"
    )
    max_messages_per_s: float = number(
        1000.0,
        "Messages a second that are read from a client, in the mean; twice as many at once. The rest waits with it.",
    )
    max_requests: int = integer(
        64, "Requests of a connection under way at once; beyond it nothing is read from it.", low=1, high=10_000
    )
    max_subscriptions: int = integer(1000, "Subscriptions that one user may hold.", low=1, high=1_000_000)
    max_connections: int = integer(50_000, "Connections in all.", low=1, high=10_000_000)
    max_user_connections: int = integer(16, "Connections of one user.", low=1, high=1_000_000)
    login_timeout: Seconds = duration(
        "10s",
        "A connection that has not asked or logged in after so long is closed; one that is over and not read is cut.",
        low="100ms",
        high="10m",
    )
    ping: Seconds = duration("25s", "How often clients are asked to say that they live.", low="100ms", high="1h")
    idle_timeout: Seconds = duration(
        "75s", "A connection that said nothing for so long is closed.", low="200ms", high="24h"
    )
    heartbeat: Seconds = duration("15s", "Pause between comments on a silent event stream.", low="100ms", high="1h")
    sse_retry: Seconds = duration("2s", "How long an event stream's client waits before it comes back.", high="1h")
    redirect_timeout: Seconds = duration(
        "30s", "How long a page that is redirected to another broker may take to get there.", low="1s", high="10m"
    )
    sse_id_bytes: Bytes = size(
        "8 kB",
        "Longest id of an event, which holds the position of every stream, some 80 bytes each, and comes back as a "
        "header; who follows more is refused an event stream.",
        low="100 B",
        high="1 MB",
    )
    rate_window: Seconds = duration("10s", "Time constant of the moving averages of load.", low="100ms", high="1h")
    rate_change: float = number(
        0.05, "Part of its rate by which a stream's has to change to be told to the coordinator again.", high=1.0
    )
    drain_timeout: Seconds = duration(
        "30s", "How long a stopping broker waits for its subscribers to be placed elsewhere.", low="0ms", high="1h"
    )

    def problems(self) -> Iterator[str]:
        yield from ordered("broker", self, "outbox_bytes", "outbox_hard_bytes")
        yield from ordered("broker", self, "ping", "idle_timeout")
        yield from ordered("broker", self, "sse_id_bytes", "max_head_bytes")
        if self.insecure and not is_loopback(self.host):
            yield f"broker.insecure: allowed on a loopback address only, and broker.host is {self.host!r}"
