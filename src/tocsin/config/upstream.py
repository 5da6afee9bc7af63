"""Settings of how a broker deals with the other parts of the system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.config.checks import ordered
from tocsin.settings.declare import Bytes, Seconds, duration, integer, size


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
    parallel: int = integer(
        32, "Requests to the coordinator, and to other brokers, under way at once; further ones wait for their turn.",
        low=1, high=10_000,
    )  # fmt: skip
    keep_batch: Bytes = size(
        "256 kB", "Bytes of subscriptions that the coordinator is asked to keep in one request.", high="16 MB"
    )
    report_batch: Bytes = size(
        "4 MB",
        "Bytes of a report to the coordinator in one request; more are told in further ones. Well below its "
        "`coordinator.max_body_bytes`.",
        high="1 GB",
    )
    noted: Bytes = size(
        "64 MB",
        "Bytes of subscriptions made or ended that a broker notes while the coordinator is away, some 200 for each; "
        "beyond it, further ones are refused as `unavailable`.",
        low="1 kB",
        high="10 GB",
    )
    hand_in: Seconds = duration(
        "5s",
        "How long a stopping broker tries, where the coordinator is away, to tell it what was noted meanwhile.",
        low="100ms",
        high="10m",
    )
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
    record_lines: int = integer(
        10_000,
        "Records sent to the data cluster in one request, and in one message of a subscriber; no more than its "
        "`ingest.max_batch_records`.",
        low=1,
        high=100_000_000,
    )
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
    topic_page: Bytes = size("256 kB", "Bytes of topics' pasts given in one answer to another broker.", high="64 MB")
    handover_topics: int = integer(
        500, "Topics that another broker is asked for, or offered, in one request.", low=1, high=4096
    )
    settle: Seconds = duration(
        "5s", "How long a request waits until brokers agree who stamps its topic.", low="0s", high="10m"
    )
    leaving: Seconds = duration(
        "1m", "How long a broker that left is still asked for the topics that it stamped.", low="0s", high="1h"
    )

    def problems(self) -> Iterator[str]:
        yield from ordered("upstream", self, "backoff_min", "backoff_max")
        yield from ordered("upstream", self, "record_batch", "record_pending")
