"""Every setting there is, declared once: kind, default, bounds, and one sentence.

Durations are held in seconds and sizes in bytes, whatever unit they were written in. ``load`` reads
file < environment < flags (see ``tocsin.settings.read``) and checks the whole: one ConfigError tells
all problems. Read once in ``cli/``, then passed down.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tocsin.errors import ConfigError
from tocsin.settings.declare import (
    Bytes,
    Seconds,
    choice,
    duration,
    flag,
    integer,
    number,
    section,
    sections_of,
    size,
    table,
    text,
)
from tocsin.settings.read import gather, values


@dataclass(frozen=True, slots=True)
class Cluster:
    data_dir: str = text(".tocsin", "Directory that holds everything the cluster keeps.", pattern=".+")
    host: str = text(
        "127.0.0.1", "Address the HTTP interface binds.", pattern=r"\S+", expected="a host name or address"
    )
    port: int = integer(8420, "Port of the HTTP interface; 0 takes a free one.", low=0, high=65535)
    insecure: bool = flag(False, "Everyone is admin without a token; allowed on loopback only.")
    master: str = text(
        "local[*]",
        "Spark master that evaluates channels.",
        pattern=r"local(\[.+\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn",
        expected="local[n], spark://host:port, k8s://url or yarn",
    )
    driver_memory: str = text(
        "2g", "Heap of the Spark driver, as Java writes it.", pattern=r"[1-9]\d*[kKmMgG]", expected="such as 512m or 2g"
    )
    load_dir: str = text(
        "", "Directory below which LOAD DATASET and feeds may read on the cluster's machine; empty allows none."
    )
    spark_conf: Mapping[str, str] = table("Further Spark settings, by their Spark names.")

    def problems(self) -> Iterator[str]:
        if self.insecure and not is_loopback(self.host):
            yield f"cluster.insecure: allowed on a loopback address only, and cluster.host is {self.host!r}"


@dataclass(frozen=True, slots=True)
class Http:
    max_connections: int = integer(
        2048, "Connections beyond so many have their requests answered 503.", low=1, high=1_000_000
    )
    head_timeout: Seconds = duration(
        "10s", "A connection whose request's head is not complete after so long is closed.", low="100ms", high="10m"
    )
    body_timeout: Seconds = duration(
        "30s", "A request whose body is not complete after so long is answered 408.", low="100ms", high="1h"
    )
    stall_timeout: Seconds = duration(
        "30s", "A connection whose peer takes nothing of an answer for so long is closed.", low="100ms", high="1h"
    )
    allowed_origins: str = text(
        "",
        "Origins of web pages that may ask, such as `https://board.example`, separated by spaces.",
        pattern=r"(https?://[^\s/]+( +https?://[^\s/]+)*)?",
        expected="origins (scheme://host[:port]) separated by spaces",
    )
    open_metrics: bool = flag(False, "Metrics may be read without a token.")
    tls_certificate: str = text("", "PEM file with the certificate chain; with it, the interface is HTTPS only.")
    tls_key: str = text("", "PEM file with the certificate's private key.")

    def problems(self) -> Iterator[str]:
        if bool(self.tls_certificate) != bool(self.tls_key):
            yield "http.tls_certificate, http.tls_key: expected both or neither"


@dataclass(frozen=True, slots=True)
class Ingest:
    max_batch_bytes: Bytes = size("16 MB", "Longest request body; a longer one gets 413.", low="1 kB", high="1 GB")
    max_record_bytes: Bytes = size("1 MB", "Longest record; a longer one goes to the dead letters.", high="1 GB")
    max_pending_bytes: Bytes = size("256 MB", "Bytes waiting to become durable; beyond it requests get 429.")
    max_pending_batches: int = integer(
        64, "Batches becoming durable at once; beyond it requests get 429.", low=1, high=100_000
    )
    max_batch_records: int = integer(
        100_000, "Lines of one batch of records; a longer one gets 413.", low=1, high=100_000_000
    )
    idempotency_keys: int = integer(100_000, "Idempotency keys remembered per dataset.", low=0, high=100_000_000)

    def problems(self) -> Iterator[str]:
        yield from _ordered("ingest", self, "max_record_bytes", "max_batch_bytes")
        yield from _ordered("ingest", self, "max_batch_bytes", "max_pending_bytes")


@dataclass(frozen=True, slots=True)
class Channels:
    tick_min_interval: Seconds = duration(
        "5ms", "Continuous channels wait so long for more records before a tick.", low="0ms", high="1m"
    )
    max_window_records: int = integer(
        100_000, "New records one execution looks at; what is left waits for the next.", low=1, high=100_000_000
    )
    driver_records: int = integer(
        500,
        "Windows of at most so many records are matched in the driver, larger ones in Spark's workers.",
        low=0,
        high=10**6,
    )
    min_period: Seconds = duration("100ms", "Shortest PERIOD a channel may ask for.", high="1h")
    retry_backoff_min: Seconds = duration("500ms", "First pause of a failing channel.", high="1h")
    retry_backoff_max: Seconds = duration("1m", "Longest pause of a failing channel.", high="24h")
    execution_limit: Seconds = duration(
        "5m",
        "How long one execution may run; then it is cancelled, its channel reported as failing, and the same window "
        "tried again after a pause.",
        low="100ms",
        high="24h",
    )
    yield_after: Seconds = duration(
        "10s",
        "How long others may wait for Spark or a thread before the longest execution is cancelled, as at its limit; "
        "each time that this ends it, its next try may hold others for twice as long, up to eight times.",
        low="100ms",
        high="24h",
    )
    slow_backoff_max: Seconds = duration(
        "10m", "Longest pause of a channel that took too long; it pauses for twice the time that it took.", high="24h"
    )
    stop_wait: Seconds = duration(
        "5s",
        "How long a drain waits for executions to finish before it cancels them, and how long it, DROP CHANNEL and "
        "CREATE OR REPLACE CHANNEL wait for cancelled ones to end.",
        low="0ms",
        high="10m",
    )
    index: bool = flag(True, "Match by index where a channel allows it; otherwise always by join.")
    cell: float = number(500.0, "Side of the base grid cell, in the unit of the coordinates (metres on the sphere).")
    max_radius: float = number(50_000.0, "Largest radius a subscription may have, in the same unit.")
    compact_pending: int = integer(
        2_000,
        "Subscriptions added and removed before a channel's base is compacted, or 1 % of it if that is more.",
        low=1,
        high=100_000_000,
    )

    def problems(self) -> Iterator[str]:
        yield from _ordered("channels", self, "retry_backoff_min", "retry_backoff_max")


@dataclass(frozen=True, slots=True)
class Results:
    retain_age: Seconds = duration("24h", "How long results are kept where the channel does not say.", high="3660d")
    retain_size: Bytes = size("1 GB", "Bytes of results kept per channel where it does not say.", high="1000 TB")
    inline_size: Bytes = size(
        "64 kB",
        "Results of one execution up to this size are kept in the ledger, not in a file.",
        low="0 B",
        high="16 MB",
    )
    pull_max_rows: int = integer(10_000, "Results one pull returns at most.", low=1, high=10_000_000)
    pull_max_bytes: Bytes = size("4 MB", "Bytes of payload one pull returns at most.", low="1 kB", high="1 GB")


@dataclass(frozen=True, slots=True)
class Outbox:
    timeout: Seconds = duration("5s", "How long a broker may take to answer a notification.", high="10m")
    backoff_min: Seconds = duration("200ms", "First pause before a notification is sent again.", high="1h")
    backoff_max: Seconds = duration("1m", "Longest pause before a notification is sent again.", high="24h")
    push_max_bytes: Bytes = size(
        "64 kB", "Payload a PUSH channel's notification carries at most.", low="0 B", high="64 MB"
    )
    notify_max_ids: int = integer(1000, "Backend subscriptions one notification names at most.", low=1, high=1_000_000)
    max_waiting: int = integer(
        10_000,
        "Notifications kept per broker; beyond it the oldest give way, for pulling is the truth.",
        low=1,
        high=10**7,
    )

    def problems(self) -> Iterator[str]:
        yield from _ordered("outbox", self, "backoff_min", "backoff_max")


@dataclass(frozen=True, slots=True)
class Select:
    max_rows: int = integer(10_000, "Rows a SELECT returns at most.", low=1, high=10_000_000)
    max_bytes: Bytes = size("16 MB", "Bytes of rows a SELECT returns at most.", low="1 kB", high="1 GB")
    timeout: Seconds = duration("30s", "How long a SELECT may run.", high="24h")
    results_max_bytes: Bytes = size(
        "64 MB", "Bytes of a channel's results that a SELECT reads at most, the oldest first.", low="1 kB", high="10 GB"
    )


@dataclass(frozen=True, slots=True)
class Statements:
    max_statements: int = integer(1_000, "Statements of one script; a longer one gets 413.", low=1, high=1_000_000)
    timeout: Seconds = duration(
        "5m", "How long a script may run; no statement of it begins later.", low="100ms", high="24h"
    )
    parallel: int = integer(
        4, "Scripts that run at once; those of one subject take all places but one.", low=1, high=64
    )
    max_waiting: int = integer(
        16, "Scripts of one subject that wait for a place; beyond it requests get 429.", low=0, high=10_000
    )


@dataclass(frozen=True, slots=True)
class Coordinator:
    host: str = text("127.0.0.1", "Address the coordinator binds.", pattern=r"\S+", expected="a host name or address")
    port: int = integer(8440, "The coordinator's port; 0 takes a free one.", low=0, high=65535)
    insecure: bool = flag(False, "Everyone is admin without a token; allowed on loopback only.")
    store: str = text(
        "",
        "Where its state is kept: `sqlite:///FILE` or `postgresql://...`; empty means `coordinator.db` in the data "
        "directory.",
        pattern=r"(sqlite:///.+|postgres(ql)?://.+)?",
        expected="sqlite:///FILE or postgresql://...",
    )
    cluster: str = text(
        "",
        "Address of the data cluster, where subscriptions of dead brokers are removed; empty means the one in "
        "`[cluster]`.",
        pattern=r"(https?://[^\s/]+)?",
        expected="http://host:port",
    )
    placement: str = text("nearest", "Policy that places newcomers: nearest, round_robin, random or least_loaded.")
    placement_options: Mapping[str, str] = table("Parameters of the placement policy, by their names.")
    report_interval: Seconds = duration("1s", "How often brokers report.", low="50ms", high="1m")
    tick: Seconds = duration(
        "250ms", "How often the coordinator looks who lives and what is due.", low="10ms", high="5s"
    )
    silent_after: Seconds = duration(
        "2500ms", "A broker that was not heard for so long gets no newcomers.", low="100ms", high="10m"
    )
    refused_after: Seconds = duration(
        "3s",
        "A broker whose address refuses connections is dead after so long without a report.",
        low="100ms",
        high="1h",
    )
    dead_after: Seconds = duration(
        "10s", "A broker is dead after so long without a report, whatever else.", low="200ms", high="1h"
    )
    ask_timeout: Seconds = duration("1s", "How long a silent broker's address is tried.", low="10ms", high="1m")
    adopt_timeout: Seconds = duration(
        "10s", "How long the destination of a move may take to attach a user's subscriptions.", low="100ms", high="1h"
    )
    move_timeout: Seconds = duration(
        "30s", "How long a user may take to arrive at its new broker; then it stays.", low="100ms", high="1h"
    )
    retry: Seconds = duration("2s", "Pause before a broker is told again what it failed to do.", low="10ms", high="1h")
    moves_in_flight: int = integer(64, "Moves under way at once.", low=1, high=100_000)
    moves_per_s: float = number(100.0, "Moves that begin a second at most.", high=1e6)
    kept_moves: int = integer(10_000, "Moves remembered, with how they ended.", low=1, high=10**7)
    kept_plans: int = integer(1_000, "Plans remembered.", low=1, high=10**6)
    offline_ttl: Seconds = duration(
        "7d", "A user that was away for so long is forgotten, with its subscriptions.", low="1s", high="3660d"
    )
    forget_broker: Seconds = duration("24h", "A dead broker is forgotten after so long.", low="1s", high="3660d")
    ticket_ttl: Seconds = duration(
        "5m", "How long a ticket lets its user log in without the coordinator.", low="1s", high="30d"
    )
    max_users: int = integer(1_000_000, "Users kept.", low=1, high=10**8)
    max_subscriptions: int = integer(1_000, "Subscriptions kept of one user.", low=1, high=10**6)
    max_body_bytes: Bytes = size("16 MB", "Longest request body.", low="1 kB", high="1 GB")
    max_wait: Seconds = duration("30s", "How long a request for instructions waits at most.", low="0s", high="10m")
    page_instructions: int = integer(500, "Instructions given in one answer.", low=1, high=100_000)
    max_instructions: int = integer(
        2_000_000,
        "Instructions that wait for one broker; beyond it the broker has to register again.",
        low=1,
        high=10**8,
    )
    cluster_timeout: Seconds = duration("10s", "How long the data cluster may take to answer.", low="100ms", high="10m")

    def problems(self) -> Iterator[str]:
        yield from _ordered("coordinator", self, "silent_after", "refused_after")
        yield from _ordered("coordinator", self, "refused_after", "dead_after")
        yield from _ordered("coordinator", self, "report_interval", "silent_after")
        if self.insecure and not is_loopback(self.host):
            yield f"coordinator.insecure: allowed on a loopback address only, and coordinator.host is {self.host!r}"


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
    shedding: str = choice("oldest", ("oldest",), "Which notifications a slow connection does without.")
    cache_bytes: Bytes = size(
        "64 MB", "Bytes of recent notifications kept for those who come back.", low="0 B", high="1 TB"
    )
    replays: int = integer(16, "Reads of a stream's past under way at once.", low=1, high=10_000)
    retry_pause: Seconds = duration("1s", "Pause before a read of a stream's past is tried again.", high="10m")
    max_message_bytes: Bytes = size("256 kB", "Longest message of a client.", low="1 kB", high="64 MB")
    max_notice_bytes: Bytes = size("1 MB", "Longest notice of the data cluster.", low="1 kB", high="1 GB")
    max_messages_per_s: float = number(
        1000.0, "Messages a second that a client may send, in the mean; twice as many at once."
    )
    max_requests: int = integer(
        64, "Requests of a connection under way at once; beyond it nothing is read from it.", low=1, high=10_000
    )
    max_subscriptions: int = integer(1000, "Subscriptions that one user may hold.", low=1, high=1_000_000)
    max_connections: int = integer(50_000, "Connections in all.", low=1, high=10_000_000)
    max_user_connections: int = integer(16, "Connections of one user.", low=1, high=1_000_000)
    login_timeout: Seconds = duration(
        "10s", "A connection that has not asked or logged in after so long is closed.", low="100ms", high="10m"
    )
    ping: Seconds = duration("25s", "How often clients are asked to say that they live.", low="100ms", high="1h")
    idle_timeout: Seconds = duration(
        "75s", "A connection that said nothing for so long is closed.", low="200ms", high="24h"
    )
    heartbeat: Seconds = duration("15s", "Pause between comments on a silent event stream.", low="100ms", high="1h")
    sse_retry: Seconds = duration("2s", "How long an event stream's client waits before it comes back.", high="1h")
    rate_window: Seconds = duration("10s", "Time constant of the moving averages of load.", low="100ms", high="1h")
    drain_timeout: Seconds = duration(
        "30s", "How long a stopping broker waits for its subscribers to be placed elsewhere.", low="0ms", high="1h"
    )

    def problems(self) -> Iterator[str]:
        yield from _ordered("broker", self, "outbox_bytes", "outbox_hard_bytes")
        yield from _ordered("broker", self, "ping", "idle_timeout")
        if self.insecure and not is_loopback(self.host):
            yield f"broker.insecure: allowed on a loopback address only, and broker.host is {self.host!r}"


@dataclass(frozen=True, slots=True)
class Upstream:
    timeout: Seconds = duration(
        "5s",
        "How long the data cluster, the coordinator or another broker may take to answer.",
        low="100ms",
        high="10m",
    )
    backoff_min: Seconds = duration("100ms", "First pause before one that did not answer is asked again.", high="1h")
    backoff_max: Seconds = duration("2s", "Longest pause before one that did not answer is asked again.", high="1h")
    pull_wait: Seconds = duration(
        "20s", "How long a request for results or instructions waits for some to come.", low="0s", high="30s"
    )
    pull_rows: int = integer(2000, "Results that one pull or replay asks for.", low=1, high=1_000_000)
    fill_waiting: int = integer(
        10_000, "Results of a stream that wait while it is being filled; beyond it, it is filled once more.", low=1,
        high=10**7,
    )  # fmt: skip
    ack_interval: Seconds = duration(
        "3s", "How often the data cluster is told how far results were pulled.", low="100ms", high="1h"
    )
    orphan_grace: Seconds = duration(
        "60s",
        "How long after its start a broker keeps subscriptions that an earlier life of it left and nobody asked for.",
        low="0s",
        high="24h",
    )
    record_delay: Seconds = duration("50ms", "How long records wait for others to go with them.", low="0s", high="1m")
    record_batch: Bytes = size("1 MB", "Bytes of records sent to the data cluster in one request.", high="16 MB")
    record_pending: Bytes = size(
        "16 MB", "Bytes of records that wait for the data cluster; beyond it senders are told to wait.", high="10 GB"
    )
    record_give_up: Seconds = duration(
        "20s", "How long records are tried before their senders are told that the data cluster is away.", high="10m"
    )
    topic_messages: int = integer(1000, "Publications kept of a topic for those who come back.", low=0, high=10**7)
    topic_bytes: Bytes = size("1 MB", "Bytes of publications kept of a topic.", low="0 B", high="10 GB")
    topic_idle: Seconds = duration(
        "1h", "A topic that nobody follows is forgotten so long after its last publication.", low="1s", high="3660d"
    )
    max_topics: int = integer(10_000, "Topics that one broker stamps.", low=1, high=10**7)
    topic_page: Bytes = size("256 kB", "Bytes of a topic's past given in one answer to another broker.", high="64 MB")
    settle: Seconds = duration(
        "5s", "How long a request waits until brokers agree who stamps its topic.", low="0s", high="10m"
    )
    leaving: Seconds = duration(
        "1m", "How long a broker that left is still asked for the topics that it stamped.", low="0s", high="1h"
    )

    def problems(self) -> Iterator[str]:
        yield from _ordered("upstream", self, "backoff_min", "backoff_max")
        yield from _ordered("upstream", self, "record_batch", "record_pending")


@dataclass(frozen=True, slots=True)
class Auth:
    secret_file: str = text("", "File with the secret that signs tokens; empty means `secret` in the data directory.")
    token_ttl: Seconds = duration("12h", "How long a token lasts where its maker does not say.", low="1s", high="3660d")
    leeway: Seconds = duration(
        "30s", "How far clocks may differ when a token's times are checked.", low="0s", high="1h"
    )
    jwks: str = text("", "File or URL of an identity provider's public keys (JWKS); empty takes our own tokens only.")
    jwks_refresh: Seconds = duration("5m", "How often the provider's keys are fetched again.", low="10s")
    issuer: str = text("", "What `iss` of a provider's token must be; empty takes any.")
    audience: str = text("", "What `aud` of a provider's token must be; empty takes any.")


@dataclass(frozen=True, slots=True)
class Client:
    coordinator: str = text(
        "",
        "Address of the coordinator that tells a client its broker, such as `http://127.0.0.1:8440`.",
        pattern=r"(https?://\S+)?",
        expected="http://host:port or https://host:port",
    )
    broker: str = text(
        "",
        "Address of the one broker to connect to where there is no coordinator, such as `http://127.0.0.1:8430`.",
        pattern=r"(https?://\S+)?",
        expected="http://host:port or https://host:port",
    )
    login_file: str = text(
        "~/.config/tocsin/login.json",
        "Where `tocsin login` keeps address and token, readable by its owner only.",
        pattern=".+",
    )
    connect_timeout: Seconds = duration(
        "30s", "How long the first login is tried before it fails; later ones are tried for ever.", low="100ms"
    )
    login_timeout: Seconds = duration(
        "10s", "A connection that has not logged in after so long is given up, and another one tried.", low="100ms"
    )
    backoff_min: Seconds = duration(
        "500ms",
        "Pauses before connecting again are drawn between zero and so much, doubled at each failure.",
        low="1ms",
    )
    backoff_max: Seconds = duration("30s", "Longest pause before connecting again.", low="1ms", high="1h")
    stable_after: Seconds = duration(
        "5s", "A connection that lasted so long was a good one: the next pause is short again.", low="0s", high="1h"
    )
    ack_interval: Seconds = duration(
        "1s", "How often a broker is told what the application has taken.", low="1ms", high="10m"
    )
    linger: Seconds = duration(
        "5s", "After a move, how long the old connection may take for its last answers.", low="0s", high="10m"
    )
    silence: float = number(
        2.5, "A connection on which nothing came for so many ping intervals is given up.", above=1.0, high=100.0
    )
    renew_before: Seconds = duration(
        "1m", "A token is renewed so long before its end, or at four fifths of a shorter life.", low="0s", high="24h"
    )
    queue_items: int = integer(
        10_000,
        "Notifications of a subscription that wait for the application; beyond it the oldest become a gap.",
        low=1,
        high=10**8,
    )
    queue_bytes: Bytes = size(
        "64 MB", "Bytes of payload that wait per subscription; beyond it the oldest become a gap.", low="1 kB"
    )
    max_message_bytes: Bytes = size(
        "16 MB", "Longest message taken from a broker; a longer one ends the connection.", low="1 kB", high="1 GB"
    )

    def problems(self) -> Iterator[str]:
        yield from _ordered("client", self, "backoff_min", "backoff_max")


@dataclass(frozen=True, slots=True)
class Log:
    level: str = choice("info", ("debug", "info", "warning", "error"), "Least important message that is written.")
    format: str = choice("text", ("text", "json"), "How a message is written.")


@dataclass(frozen=True, slots=True)
class Config:
    cluster: Cluster = section(Cluster, "Where the data cluster lives and what evaluates its channels.")
    http: Http = section(Http, "The HTTP interface: connections, web pages, TLS.")
    ingest: Ingest = section(Ingest, "Limits of what may be sent to datasets.")
    channels: Channels = section(Channels, "How channels execute.")
    results: Results = section(Results, "How long results are kept and how they are read.")
    outbox: Outbox = section(Outbox, "How brokers are told of new results.")
    select: Select = section(Select, "Limits of plain SELECT statements.")
    statements: Statements = section(Statements, "Limits of scripts sent to the cluster.")
    coordinator: Coordinator = section(Coordinator, "The coordinator: who is where, who lives, who moves.")
    broker: Broker = section(Broker, "A broker: its address, its limits, and how it treats slow subscribers.")
    upstream: Upstream = section(
        Upstream, "How a broker deals with the data cluster, the coordinator and other brokers."
    )
    auth: Auth = section(Auth, "Tokens.")
    client: Client = section(Client, "How clients find a broker, and come back to it.")
    log: Log = section(Log, "Messages on standard error.")

    @property
    def data_dir(self) -> Path:
        return Path(self.cluster.data_dir)

    @property
    def secret_path(self) -> Path:
        return Path(self.auth.secret_file) if self.auth.secret_file else self.data_dir / "secret"

    def problems(self) -> Iterator[str]:
        """What each value alone cannot tell."""
        for item in fields(self):
            part = getattr(self, item.name)
            if hasattr(part, "problems"):
                yield from part.problems()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration, and for each setting that is not at its default where it came from."""

    config: Config
    sources: Mapping[str, str]


def load(
    path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Config:
    """The configuration; ``overrides`` are by path (``"cluster.port"``), and ``None`` overrides nothing."""
    return resolve(path, environ, overrides).config


def resolve(
    path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Resolved:
    """As ``load``, and where each value came from."""
    written, problems = gather(Config, path, environ or {}, overrides or {})
    found = values(Config, written, problems)
    config = Config(**{name: kind(**found[name]) for name, kind in sections_of(Config)})
    problems.extend(config.problems())
    if problems:
        raise ConfigError(*problems)
    return Resolved(config, {name: w.source for name, w in written.items()})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _ordered(name: str, part: object, low: str, high: str) -> Iterator[str]:
    if getattr(part, low) > getattr(part, high):
        yield f"{name}.{low}: expected at most {name}.{high}"
