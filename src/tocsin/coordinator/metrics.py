"""What the coordinator counts, for Prometheus. Labels come from fixed sets."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._events = self._counter("events", "Events handled.", "event")
        self._moves = self._counter("moves", "Moves that ended.", "state")
        self._ended: Tally[str] = Tally()
        self._decisions = self._counter("decisions", "Decisions to balance or not.", "action", "reason")
        self._rejected = self._counter("rejected_moves", "Candidates that balancing refused to move.", "reason")
        self._discarded = self._counter("discarded_plans", "Plans made and not carried out.", "policy", "reason")
        self._deciding = Histogram(
            "tocsin_coordinator_decision_seconds",
            "Time to decide what to balance.",
            buckets=(*_FAST, 30.0, 100.0),
            registry=self.registry,
        )
        self._brokers = self._gauge("brokers", "Brokers.", "state")
        self._users = self._gauge("users", "Users kept.")
        self._online = self._gauge("users_online", "Users that brokers hold online.")
        self._active = self._gauge("moves_active", "Moves planned or under way.")
        self._waiting = self._gauge("instructions_waiting", "Instructions that brokers have not taken.")
        self._commit = Histogram(
            "tocsin_coordinator_event_seconds",
            "From an event to its durability.",
            buckets=_FAST,
            registry=self.registry,
        )
        self._requests = self._counter("http_requests", "Requests answered.", "route", "method", "status")
        self._request_seconds = Histogram(
            "tocsin_coordinator_http_seconds",
            "Time to answer a request.",
            ["route"],
            buckets=_FAST,
            registry=self.registry,
        )
        self.before_scrape: Callable[[], None] = lambda: None

    def handled(self, event: str, seconds: float) -> None:
        self._events.labels(event).inc()
        self._commit.observe(seconds)

    def moves_ended(self, by_state: Mapping[str, int]) -> None:
        """How many ended in all, by how they ended."""
        for state, count in by_state.items():
            self._moves.labels(state).inc(count - self._ended[state])
            self._ended[state] = count

    def decided(self, action: str, reason: str, seconds: float) -> None:
        self._decisions.labels(action, reason).inc()
        self._deciding.observe(seconds)

    def refused(self, rejected: Mapping[str, int], discarded: Sequence[tuple[str, str]]) -> None:
        """Candidates by reason, and plans by policy and reason."""
        for reason, count in rejected.items():
            self._rejected.labels(reason).inc(count)
        for policy, reason in discarded:
            self._discarded.labels(policy, reason).inc()

    def gauge(self, brokers: Mapping[str, int], users: int, online: int, active: int, waiting: int) -> None:
        for state, count in brokers.items():
            self._brokers.labels(state).set(count)
        for gauge, count in ((self._users, users), (self._online, online), (self._active, active)):
            gauge.set(count)
        self._waiting.set(waiting)

    def http(self, route: str, method: str, status: int, seconds: float) -> None:
        verb = method if method in METHODS else "(other)"
        self._requests.labels(route, verb, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def render(self) -> bytes:
        self.before_scrape()
        return generate_latest(self.registry)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"tocsin_coordinator_{name}_total", help, labels, registry=self.registry)

    def _gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return Gauge(f"tocsin_coordinator_{name}", help, labels, registry=self.registry)


def tally(states: list[str], known: list[str]) -> dict[str, int]:
    """How many of each, also of those that there are none of."""
    found = Tally(states)
    return {state: found[state] for state in known}
