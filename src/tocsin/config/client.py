"""Settings of clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.config.checks import ordered
from tocsin.settings.declare import Bytes, Seconds, duration, integer, number, size, text


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
    ca_file: str = text(
        "",
        "PEM file of the authorities that sign the certificates of coordinator and brokers; empty for those that the "
        "machine trusts. Commands then go by `http.ca_file`.",
    )
    login_file: str = text(
        "~/.config/tocsin/login.json",
        "Where `tocsin login` keeps address and token, readable by its owner only.",
        pattern=".+",
    )
    connect_timeout: Seconds = duration(
        "30s", "How long the first login is tried before it fails; later ones are tried for ever.", low="100ms"
    )
    subscribe_timeout: Seconds = duration(
        "30s",
        "How long a new subscription that no broker can serve now is tried again; one that goes on is tried for ever.",
        low="0s",
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
    max_requests: int = integer(
        10_000,
        "Requests of the application that wait for a connection or an answer; beyond it another fails at once.",
        low=1,
        high=10**7,
    )
    max_message_bytes: Bytes = size(
        "16 MB",
        "Longest message taken from a broker; a longer one ends the session, which would only be sent it again.",
        low="1 kB",
        high="1 GB",
    )

    command_timeout: Seconds = duration(
        "1m", "How long a command such as `tocsin sql` waits for each answer of the cluster.", low="100ms", high="24h"
    )
    rebalance_timeout: Seconds = duration(
        "15m",
        "How long `tocsin rebalance` waits for the coordinator: every policy on a million users takes minutes.",
        low="100ms",
        high="24h",
    )

    def problems(self) -> Iterator[str]:
        yield from ordered("client", self, "backoff_min", "backoff_max")
