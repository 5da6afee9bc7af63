"""What Prometheus may know of a broker. Nothing here counts by user, stream or connection."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from tocsin.broker.core import Core

CONTENT_TYPE = CONTENT_TYPE_LATEST


class CoreCollector(Collector):
    """Reads the core when asked; the hot path counts plain numbers."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def collect(self) -> Iterator[Metric]:
        core, meters = self._core, self._core.meters
        load = meters.load(len(core.outlets), core.now())
        yield _gauge("connections", "Open subscriber connections.", load.connections)
        yield _gauge("users", "Users held, online or not.", len(core.users))
        yield _gauge("streams", "Streams that someone holds.", len(core.hub.streams()))
        yield _gauge("cache_bytes", "Bytes of recent notifications kept.", core.hub.cache.size_bytes)
        yield _gauge("loop_lag_seconds", "How late the event loop runs its timers.", load.loop_lag_s)
        yield _gauge("model_in_bytes_per_second", "Payload taken in, once a stream.", load.model_in_per_s)
        yield _gauge("model_out_bytes_per_second", "Payload owed to subscribers.", load.model_out_per_s)
        yield _counter("wire_bytes", "Bytes given to sockets.", meters.wire_bytes)
        yield _counter("deliveries", "Notifications given to connections.", meters.delivered)
        yield _counter("shed", "Notifications that slow connections did without.", meters.shed)
        yield _counter("gaps", "Gaps told to everyone on a stream.", meters.gaps)
        closes = CounterMetricFamily("tocsin_broker_closes", "Connections ended by the broker.", labels=["reason"])
        for reason, count in core.closes.items():
            closes.add_metric([reason], count)
        yield closes


class Metrics:
    """One broker's."""

    def __init__(self, core: Core) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(CoreCollector(core))
        self._http = Histogram(
            "tocsin_broker_http_seconds", "Time to answer.", ["route", "method", "status"], registry=self._registry
        )

    def http(self, route: str, method: str, status: int, seconds: float) -> None:
        self._http.labels(route, method, str(status)).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self._registry)


def _gauge(name: str, sentence: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tocsin_broker_{name}", sentence, value)


def _counter(name: str, sentence: str, value: float) -> Metric:
    return CounterMetricFamily(f"tocsin_broker_{name}", sentence, value)
