"""Settings of the data cluster: where it lives, what may be sent to it, asked of it and kept by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tocsin.config.checks import is_loopback, ordered
from tocsin.settings.declare import Bytes, Seconds, duration, flag, integer, size, table, text


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
    max_body_bytes: Bytes = size(
        "16 MB", "Longest JSON body of a request other than records; a longer one gets 413.", low="1 kB", high="1 GB"
    )
    max_items: int = integer(
        10_000, "Subscriptions, ids, keys or cursors in one request; more get 413.", low=1, high=1_000_000
    )
    spark_exit_wait: Seconds = duration(
        "20s", "How long Spark's Java process may take to end at a stop before it is killed.", low="0ms", high="10m"
    )
    spark_conf: Mapping[str, str] = table("Further Spark settings, by their Spark names.")

    def problems(self) -> Iterator[str]:
        if self.insecure and not is_loopback(self.host):
            yield f"cluster.insecure: allowed on a loopback address only, and cluster.host is {self.host!r}"


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
        yield from ordered("ingest", self, "max_record_bytes", "max_batch_bytes")
        yield from ordered("ingest", self, "max_batch_bytes", "max_pending_bytes")


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
    pull_max_wait: Seconds = duration("30s", "How long a pull may wait for results at most.", low="0s", high="1h")
    max_waiting_pulls: int = integer(
        128, "Pulls that wait at once, each in a thread; beyond it requests get 429.", low=1, high=10_000
    )


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
        yield from ordered("outbox", self, "backoff_min", "backoff_max")


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
        "5m",
        "How long a script may run; no statement of it begins later, and a SELECT or LOAD DATASET is ended.",
        low="100ms",
        high="24h",
    )
    parallel: int = integer(
        4, "Scripts that run at once; those of one subject take all places but one.", low=1, high=64
    )
    max_waiting: int = integer(
        16, "Scripts of one subject that wait for a place; beyond it requests get 429.", low=0, high=10_000
    )
