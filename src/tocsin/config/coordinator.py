"""Settings of the coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tocsin.config.checks import is_loopback, ordered
from tocsin.settings.declare import Bytes, Seconds, duration, flag, integer, number, size, table, text


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
    store_wait: Seconds = duration(
        "5s",
        "How long a coordinator that starts waits for PostgreSQL to know that the one before it has gone.",
        low="0s",
        high="10m",
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
    migrate: str = text(
        "xbal",
        "Policy that moves some users when brokers are unevenly loaded: xbal, ldm, sdm or gmove; empty for none.",
    )
    migrate_options: Mapping[str, str] = table("Parameters of the policy that migrates, by their names.")
    shuffle: str = text(
        "simsh", "Policy that arranges everyone anew when they are very unevenly loaded: simsh or gsh; empty for none."
    )
    shuffle_options: Mapping[str, str] = table("Parameters of the policy that shuffles, by their names.")
    balancing_options: Mapping[str, str] = table(
        "Thresholds and times of balancing, by their names; unset, `beta` and `theta` are 10000 and `gamma` is 1."
    )
    balance_every: Seconds = duration(
        "30s", "How often it is decided whether to move users for balance.", low="100ms", high="1d"
    )
    moves_per_plan: int = integer(
        10_000, "Moves in one plan for balance; a longer shuffle is not begun.", low=1, high=10**6
    )
    kept_decisions: int = integer(1_000, "Decisions about balance remembered.", low=1, high=10**6)
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
    follow_timeout: Seconds = duration(
        "5s",
        "How long a user's other sessions may take to follow the first that arrived at its new broker; then the old "
        "one closes them, and they come back by themselves.",
        low="0s",
        high="1h",
    )
    retry: Seconds = duration("2s", "Pause before a broker is told again what it failed to do.", low="10ms", high="1h")
    moves_in_flight: int = integer(64, "Moves under way at once.", low=1, high=100_000)
    moves_per_s: float = number(100.0, "Moves that begin a second at most.", high=1e6)
    drain_moves_per_s: float = number(
        1000.0,
        "Moves that begin a second at most while a broker leaves that would not be empty in time otherwise; as many "
        "times more go on at once.",
        high=1e6,
    )
    kept_moves: int = integer(10_000, "Moves remembered, with how they ended.", low=1, high=10**7)
    kept_plans: int = integer(1_000, "Plans remembered.", low=1, high=10**6)
    offline_ttl: Seconds = duration(
        "7d", "A user that was away for so long is forgotten, with its subscriptions.", low="1s", high="3660d"
    )
    forget_broker: Seconds = duration("24h", "A dead broker is forgotten after so long.", low="1s", high="3660d")
    late_words: Seconds = duration(
        "10s",
        "An end that a broker noted while the coordinator was away does not count so long after another broker said "
        "that the subscription is wanted.",
        low="0s",
        high="10m",
    )
    detach_after: Seconds = duration(
        "30s",
        "What a dead broker left at the data cluster stays there for so long at least: subscriptions made while the "
        "coordinator was away are known to their clients alone, which bring them to another broker.",
        low="0s",
        high="1h",
    )
    ticket_ttl: Seconds = duration(
        "5m", "How long a ticket lets its user log in without the coordinator.", low="1s", high="30d"
    )
    max_users: int = integer(1_000_000, "Users kept.", low=1, high=10**8)
    max_subscriptions: int = integer(1_000, "Subscriptions kept of one user.", low=1, high=10**6)
    max_body_bytes: Bytes = size("16 MB", "Longest request body.", low="1 kB", high="1 GB")
    max_wait: Seconds = duration("30s", "How long a request for instructions waits at most.", low="0s", high="10m")
    page_instructions: int = integer(
        2_000, "Instructions given in one answer; a subscription that one names counts as another.", low=1, high=100_000
    )
    max_instructions: int = integer(
        2_000_000,
        "Instructions that wait for one broker; beyond it the broker has to register again.",
        low=1,
        high=10**8,
    )
    cluster_timeout: Seconds = duration("10s", "How long the data cluster may take to answer.", low="100ms", high="10m")

    def problems(self) -> Iterator[str]:
        yield from ordered("coordinator", self, "silent_after", "refused_after")
        yield from ordered("coordinator", self, "refused_after", "dead_after")
        yield from ordered("coordinator", self, "report_interval", "silent_after")
        if self.insecure and not is_loopback(self.host):
            yield f"coordinator.insecure: allowed on a loopback address only, and coordinator.host is {self.host!r}"
