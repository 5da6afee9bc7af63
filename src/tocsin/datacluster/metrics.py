"""What the data cluster counts, for Prometheus.

Rules kept here:

* One registry of our own, so that two clusters in one process do not mix and nothing foreign leaks in.
* Every label is bounded: names of datasets and channels up to ``MAX_NAMES`` each, later ones are counted
  together as ``(other)``; outcomes, methods and routes come from fixed sets.
* Dropping a dataset or a channel forgets its series.
* Gauges that must be fresh at the moment of a scrape are set by a callback given to ``before_scrape``.

All methods may be called from any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
MAX_NAMES = 500
OTHER = "(other)"

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SLOW = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

ExecutionOutcome = Literal["done", "failed", "retried"]
DeliveryOutcome = Literal["delivered", "failed", "dropped"]


class Names:
    """The first ``most`` names seen stand for themselves, all others for ``(other)``."""

    def __init__(self, most: int = MAX_NAMES) -> None:
        self._most, self._seen, self._lock = most, set[str](), threading.Lock()

    def label(self, name: str) -> str:
        with self._lock:
            if name not in self._seen and len(self._seen) >= self._most:
                return OTHER
            self._seen.add(name)
            return name

    def forget(self, name: str) -> bool:
        """Whether ``name`` had a label of its own; it is free for another now."""
        with self._lock:
            known = name in self._seen
            self._seen.discard(name)
            return known


class Metrics:
    """All series, and one typed method for each thing that happens."""

    def __init__(self, max_names: int = MAX_NAMES) -> None:
        self.registry = CollectorRegistry()
        self._datasets, self._channels = Names(max_names), Names(max_names)
        self._refresh: list[Callable[[], None]] = []
        self._make_ingest()
        self._make_executions()
        self._make_subscriptions()
        self._make_http()

    def records(self, dataset: str, accepted: int, rejected: int) -> None:
        """Records became durable, whichever way they came: in their dataset, or as dead letters."""
        label = self._datasets.label(dataset)
        self._records.labels(label).inc(accepted)
        self._rejected.labels(label).inc(rejected)

    def ingested(self, seconds: float) -> None:
        """A batch that was pushed was answered for after ``seconds``."""
        self._ingest_seconds.observe(seconds)

    def executed(self, channel: str, outcome: ExecutionOutcome, seconds: float) -> None:
        label = self._channels.label(channel)
        self._executions.labels(label, outcome).inc()
        self._execution_seconds.labels(label).observe(seconds)

    def matched(self, channel: str, *, matched: int, considered: int, results: int) -> None:
        """What one execution found: pairs that matched, new records looked at, rows stored."""
        label = self._channels.label(channel)
        self._matched.labels(label).inc(matched)
        self._considered.labels(label).inc(considered)
        self._results.labels(label).inc(results)

    def record_to_result(self, channel: str, seconds: float) -> None:
        """From a record's acceptance to the commit of the execution that saw it."""
        self._record_to_result.labels(self._channels.label(channel)).observe(seconds)

    def channel_lag(self, channel: str, seconds: float) -> None:
        self._lag.labels(self._channels.label(channel)).set(seconds)

    def subscriptions(self, channel: str, frontend: int, backend: int) -> None:
        """How many subscriptions a channel has, and how many distinct parameter sets they are."""
        label = self._channels.label(channel)
        self._subscriptions.labels(label).set(frontend)
        self._backends.labels(label).set(backend)

    def lost_results(self, channel: str, rows: int) -> None:
        """Rows that brokers are told a gap for, since their files are missing or damaged."""
        self._lost.labels(self._channels.label(channel)).set(rows)

    def outbox(self, waiting: int) -> None:
        self._outbox.set(waiting)

    def outbox_attempt(self, outcome: DeliveryOutcome) -> None:
        self._attempts.labels(outcome).inc()

    def http(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered; ``route`` is the template, never the path that was asked for."""
        verb = method if method in METHODS else OTHER
        self._http_requests.labels(route, verb, str(status)).inc()
        self._http_seconds.labels(route).observe(seconds)

    def forget_dataset(self, name: str) -> None:
        if self._datasets.forget(name):
            self._records.remove_by_labels({"dataset": name})
            self._rejected.remove_by_labels({"dataset": name})

    def forget_channel(self, name: str) -> None:
        if self._channels.forget(name):
            for series in self._per_channel:
                series.remove_by_labels({"channel": name})

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Call ``refresh`` at the start of every scrape."""
        self._refresh.append(refresh)

    def render(self) -> bytes:
        """All series in Prometheus' text format."""
        for refresh in self._refresh:
            refresh()
        return generate_latest(self.registry)

    def _make_ingest(self) -> None:
        self._records = self._counter("tocsin_records_total", "Records accepted.", "dataset")
        self._rejected = self._counter("tocsin_rejected_records_total", "Records sent to the dead letters.", "dataset")
        self._ingest_seconds = self._histogram("tocsin_ingest_seconds", "A batch, from arrival to durable.", FAST)

    def _make_executions(self) -> None:
        self._executions = self._counter("tocsin_executions_total", "Executions of channels.", "channel", "outcome")
        self._execution_seconds = self._histogram("tocsin_execution_seconds", "One execution.", SLOW, "channel")
        self._results = self._counter("tocsin_results_total", "Result rows stored.", "channel")
        self._matched = self._counter("tocsin_matched_total", "Pairs that matched.", "channel")
        self._considered = self._counter("tocsin_considered_total", "New records that executions looked at.", "channel")
        self._lost = self._gauge("tocsin_lost_results", "Result rows whose files are missing or damaged.", "channel")
        self._lag = self._gauge("tocsin_channel_lag_seconds", "Age of the oldest record not yet seen.", "channel")
        self._record_to_result = self._histogram(
            "tocsin_record_to_result_seconds", "From a record's acceptance to its readable result.", SLOW, "channel"
        )

    def _make_subscriptions(self) -> None:
        self._subscriptions = self._gauge("tocsin_subscriptions", "Subscriptions held.", "channel")
        self._backends = self._gauge("tocsin_backend_subscriptions", "Distinct parameter sets.", "channel")
        self._outbox = self._gauge("tocsin_outbox_waiting", "Notices that brokers have not taken yet.")
        self._attempts = self._counter("tocsin_outbox_attempts_total", "Attempts to tell a broker.", "outcome")
        self._per_channel: tuple[Counter | Gauge | Histogram, ...] = (
            self._executions,
            self._execution_seconds,
            self._record_to_result,
            self._results,
            self._matched,
            self._considered,
            self._lag,
            self._lost,
            self._subscriptions,
            self._backends,
        )

    def _make_http(self) -> None:
        self._http_requests = self._counter(
            "tocsin_http_requests_total", "Requests answered.", "route", "method", "status"
        )
        self._http_seconds = self._histogram("tocsin_http_seconds", "Time to answer, waits included.", FAST, "route")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=buckets)
