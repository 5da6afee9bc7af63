"""The data cluster, put together: storage, Spark, channels, serving; the one that REST talks to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from tocsin.clock import Clock, SystemClock
from tocsin.compiler.channel import CompileOptions
from tocsin.config import Config
from tocsin.datacluster.arrivals import Arrivals
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.executor import Executor, Tick
from tocsin.datacluster.feeding import Feeding
from tocsin.datacluster.feeds.jars import connector_jars
from tocsin.datacluster.housekeeping import Housekeeping
from tocsin.datacluster.metrics import Metrics
from tocsin.datacluster.notifier import Notifier, NotifierOptions
from tocsin.datacluster.pushing import Pushing
from tocsin.datacluster.schedule import Schedule
from tocsin.datacluster.selecting import Selecting, SelectLimits
from tocsin.datacluster.service import (
    Answer,
    BrokerView,
    ChannelPage,
    ChannelView,
    DatasetView,
    FeedView,
    Receipt,
    Status,
    Subscribed,
    SubscriptionView,
    Wanted,
)
from tocsin.datacluster.serving import Serving
from tocsin.datacluster.showing import Showing
from tocsin.datacluster.spark.engine import Engine, EngineOptions
from tocsin.datacluster.spark.jobs import Jobs
from tocsin.datacluster.spark.session import (
    SPARK_IS_GONE,
    SparkOptions,
    jvm_is_alive,
    jvm_pid,
    needing_spark,
    start_session,
    stop_session,
)
from tocsin.datacluster.statements import Statements
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.directory import DataDirectory
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore
from tocsin.datacluster.subscribing import Subscribing
from tocsin.datacluster.ticker import Ticker
from tocsin.matching.maintain import CompactionRule
from tocsin.model.catalog import Retention
from tocsin.model.position import Position
from tocsin.tls import trusting
from tocsin.tokens import Principal, ensure_secret, mint

log = logging.getLogger(__name__)
_NOTICE_TOKEN_TTL_S = 3600.0


class Cluster:
    """Implements ``ClusterService``. ``open`` starts everything, ``close`` ends it in order.

    A Spark session that is given stays the giver's; otherwise the cluster starts and stops its own.
    """

    def __init__(self, config: Config, clock: Clock | None = None, spark: SparkSession | None = None) -> None:
        self._config, self._clock, self._given_spark = config, clock or SystemClock(), spark
        self.metrics = Metrics()
        self._started_at = self._clock.now()
        self._is_ready, self._reason = False, "starting"
        self._arrivals = Arrivals(self._clock, self.metrics.record_to_result)
        self._undo = ExitStack()

    def open(self) -> None:
        """Start everything; what was started is stopped again where a later part cannot."""
        with ExitStack() as undo:
            self._open(undo)
            self._undo = undo.pop_all()

    def _open(self, undo: ExitStack) -> None:
        self._directory = undo.enter_context(DataDirectory(self._config.data_dir))
        self._secret = ensure_secret(self._config.secret_path)
        self._ledger = undo.enter_context(Ledger(self._directory.ledger_path))
        self._directory.sweep(self._ledger)
        self._spark = self._given_spark or start_session(self._spark_options())
        if self._given_spark is None:
            undo.callback(stop_session, self._spark, self._config.cluster.spark_exit_wait)
            self._directory.note_process(jvm_pid(self._spark))
        self._assemble()
        for stop in (
            self._results.close, self._datasets.close, self._notifier.stop, self._jobs.close, self._ticker.stop,
            self._feeds.close, self._housekeeping.stop,
        ):  # fmt: skip
            undo.callback(stop)
        self._datasets.open()
        self._brokers.open()
        self._jobs.start()
        self._ticker.start()
        self._channels.open()
        self._feeds.open()
        self._notifier.start()
        self._housekeeping.start()
        InheritableThread(target=self._warm_up, name="warm-up", daemon=True).start()
        self.metrics.before_scrape(self._refresh_metrics)
        self._is_ready, self._reason = True, "ready"

    def close(self) -> None:
        """Finish what runs, start nothing more."""
        self._is_ready, self._reason = False, "stopping"
        self._undo.close()

    def _spark_options(self) -> SparkOptions:
        cluster = self._config.cluster
        return SparkOptions(
            master=cluster.master,
            driver_memory=cluster.driver_memory,
            conf=cluster.spark_conf,
            jars=connector_jars(),
            log_dir=self._directory.root / "spark",
            exit_wait_s=cluster.spark_exit_wait,
        )

    def _assemble(self) -> None:
        """Make every part; nothing starts yet."""
        self._assemble_storage()
        self._assemble_execution()
        self._assemble_serving()
        self._assemble_statements()

    def _assemble_storage(self) -> None:
        config, root, clock, ledger = self._config, self._directory.root, self._clock, self._ledger
        self._datasets = Datasets(
            root / "datasets", ledger, clock, StoreOptions(max_keys=config.ingest.idempotency_keys),
            config.ingest.max_record_bytes, config.ingest.max_batch_records,
        )  # fmt: skip
        self._datasets.on_append, self._datasets.on_drop = self._appended, self._dropped
        self._datasets.on_count = self.metrics.records
        self._brokers = Brokers(ledger, clock)
        self._results = ResultStore(root / "results", ledger)

    def _assemble_execution(self) -> None:
        config, root, clock, ledger = self._config, self._directory.root, self._clock, self._ledger
        limits = config.channels
        options = EngineOptions(config.outbox.notify_max_ids, config.results.inline_size, limits.driver_records)
        self._jobs = Jobs(self._spark, limits.execution_limit, limits.yield_after, limits.end_wait)
        self._engine = Engine(self._spark, self._datasets, self._jobs, options)
        self._executor = Executor(
            ledger, self._engine, self._jobs, self._datasets, root / "results", clock, limits.max_window_records,
            config.outbox.max_waiting,
        )  # fmt: skip
        schedule = Schedule(
            limits.tick_min_interval, limits.retry_backoff_min, limits.retry_backoff_max, limits.slow_backoff_max
        )
        self._ticker = Ticker(
            schedule, self._executor, self._jobs, clock, self._ticked, parallel_jobs=2, stop_wait_s=limits.stop_wait
        )
        compiling = CompileOptions(cell=limits.cell, max_radius=limits.max_radius, index=limits.index)
        self._channels = Channels(
            root / "indexes", ledger, self._datasets, self._spark, self._ticker, clock, compiling, limits.min_period,
            CompactionRule(limits.compact_pending),
        )  # fmt: skip
        self._channels.on_drop = self._forget_channel
        self._housekeeping = Housekeeping(
            ledger, self._datasets, self._channels, self._results, clock,
            Retention(config.results.retain_age, None, config.results.retain_size), interval_s=5.0,
        )  # fmt: skip

    def _assemble_serving(self) -> None:
        clock, ledger, results, outbox = self._clock, self._ledger, self._config.results, self._config.outbox
        self._subscribing = Subscribing(ledger, self._channels, self._brokers, clock, self._config.channels.max_radius)
        self._serving = Serving(
            ledger, self._results, self._channels, self._brokers, results.pull_max_rows, results.pull_max_bytes
        )
        self._channels.on_change = self._serving.committed
        tls = trusting("http.ca_file", self._config.http.ca_file)
        pushing = Pushing(self._channels, self._serving, outbox.push_max_bytes)
        self._notifier = Notifier(
            ledger, self._brokers.specs, pushing.message, self._token, clock,
            NotifierOptions(outbox.timeout, outbox.backoff_min, outbox.backoff_max, tls=tls),
            self.metrics.outbox_attempt,
        )  # fmt: skip

    def _assemble_statements(self) -> None:
        config, root, clock, ledger = self._config, self._directory.root, self._clock, self._ledger
        load_root = Path(config.cluster.load_dir) if config.cluster.load_dir else None
        self._feeds = Feeding(root / "feeds", ledger, self._datasets, self._spark, clock, load_root)
        self._showing = Showing(
            ledger, self._datasets, self._channels, self._brokers, self._feeds, self._subscribing, self._ticker,
            self._notifier, self._engine.join_plan,
        )  # fmt: skip
        select = config.select
        selecting = Selecting(
            self._spark, self._engine.relations, ledger, self._results, self._datasets, self._channels, self._brokers,
            SelectLimits(select.max_rows, select.max_bytes, select.timeout, select.results_max_bytes),
        )  # fmt: skip
        self._statements = Statements(
            self._datasets, self._channels, self._brokers, self._feeds, self._subscribing, selecting, self._showing,
            load_root, config.statements.max_statements,
        )  # fmt: skip

    # --- what others ask -----------------------------------------------------------------------

    def execute(self, text: str, who: Principal, go_on: Callable[[], None] = lambda: None) -> list[Answer]:
        with needing_spark():
            return self._statements.run(text, who, go_on)

    def ingest(self, dataset: str, body: bytes, key: str | None, who: Principal, form: str = "json") -> Receipt:
        who.need("ingest", dataset)
        began = time.perf_counter()
        receipt = self._datasets.ingest(dataset, body, key, form)
        self.metrics.ingested(time.perf_counter() - began)
        return receipt

    def delete_records(self, dataset: str, keys: Sequence[Mapping[str, Any]], who: Principal) -> int:
        who.need("ingest", dataset)
        return self._datasets.delete(dataset, keys)

    def subscribe(
        self, channel: str, broker: str, wanted: Sequence[Wanted], who: Principal, making: int = 0
    ) -> list[Subscribed]:
        return self._subscribing.subscribe(channel, broker, wanted, who, making)

    def unsubscribe(self, ids: Sequence[str], who: Principal, making: int | None = None) -> int:
        return self._subscribing.unsubscribe(ids, who, making=making)

    def change(self, ids: Sequence[str], broker: str, who: Principal) -> list[Subscribed]:
        return self._subscribing.change(ids, broker, who)

    def subscriptions(
        self, who: Principal, channel: str | None, broker: str | None, limit: int, after: str | None
    ) -> list[SubscriptionView]:
        return self._subscribing.list(who, channel, broker, limit, after)

    def pull(
        self, broker: str, cursors: Mapping[str, Position], who: Principal, *, max_rows: int | None = None,
        max_bytes: int | None = None, wait_s: float = 0.0,
    ) -> list[ChannelPage]:  # fmt: skip
        who.need("broker", broker)
        return self._serving.pull(broker, cursors, max_rows, max_bytes, wait_s)

    def replay(
        self, channel: str, backend: int, after: Position, through: Position | None, limit: int, who: Principal
    ) -> ChannelPage:
        if who.may("broker", "*") or who.may("read"):
            return self._serving.replay(channel, backend, after, through, limit)
        own = [id for id, name in self._brokers.names().items() if who.may("broker", name)]
        return self._serving.replay(channel, backend, after, through, limit, own)

    def acknowledge(self, broker: str, positions: Mapping[str, Position], who: Principal) -> None:
        who.need("broker", broker)
        self._serving.acknowledge(broker, positions)

    def acknowledged(self, broker: str, who: Principal) -> dict[str, Position]:
        who.need("broker", broker)
        return self._serving.acknowledged(broker)

    def datasets(self, who: Principal) -> list[DatasetView]:
        who.need("read")
        return self._showing.datasets()

    def channels(self, who: Principal) -> list[ChannelView]:
        who.need("read")
        return self._showing.channels()

    def explain(self, channel: str, who: Principal) -> Mapping[str, Any]:
        who.need("read")
        return self._showing.explain(channel)

    def brokers(self, who: Principal) -> list[BrokerView]:
        who.need("read")
        return self._showing.brokers()

    def feeds(self, who: Principal) -> list[FeedView]:
        who.need("read")
        return self._feeds.views()

    def unready(self) -> str | None:
        if not self._is_ready:
            return self._reason
        return None if jvm_is_alive() else SPARK_IS_GONE

    def status(self) -> Status:
        if reason := self.unready():
            return Status(False, reason, self._started_at)
        spark = {"master": self._config.cluster.master, "version": pyspark.__version__}
        totals = {
            "records": sum(s.count for s in self._datasets.values()),
            "subscriptions": sum(c.subscriptions.subscriptions for c in self._channels.values()),
            "backends": sum(c.subscriptions.backends for c in self._channels.values()),
            "executions": sum(c.head for c in self._channels.values()),
        }
        reason = "; ".join([self._reason, *self._datasets.problems()])
        return Status(True, reason, self._started_at, spark, totals)

    # --- what happens inside -------------------------------------------------------------------

    def _warm_up(self) -> None:
        try:
            self._engine.warm_up()
        except Exception as problem:
            if self._is_ready:
                log.warning("warming up failed, so the first ticks will be slower: %s", problem)

    def _appended(self, dataset: str) -> None:
        self._arrivals.came(dataset, self._datasets[dataset].head)
        self._ticker.arrived(dataset)

    def _dropped(self, dataset: str) -> None:
        self._arrivals.forget(dataset)
        self.metrics.forget_dataset(dataset)

    def _forget_channel(self, channel: str) -> None:
        self._engine.forget(channel)
        self.metrics.forget_channel(channel)

    def _ticked(self, tick: Tick) -> None:
        name = tick.channel.spec.name
        if tick.problem is not None and not tick.is_stopped:
            self.metrics.executed(name, "failed", tick.duration_s)
        if tick.outcome is None:
            return
        tick.channel.durations_s.append(tick.duration_s)
        self._serving.committed()
        if tick.outcome.pairs:
            self._notifier.wake()
        self.metrics.executed(name, "done", tick.duration_s)
        outcome = tick.outcome
        self.metrics.matched(name, matched=outcome.pairs, considered=tick.considered, results=outcome.rows)
        self._arrivals.seen(name, tick.windows or {})

    def _refresh_metrics(self) -> None:
        for channel in self._channels.values():
            self.metrics.channel_lag(channel.spec.name, self._ticker.lag_s(channel))
            self.metrics.lost_results(channel.spec.name, self._results.lost_rows(channel.id))
            held = channel.subscriptions
            self.metrics.subscriptions(channel.spec.name, held.subscriptions, held.backends)
        self.metrics.outbox(sum(b.waiting_notices for b in self._showing.brokers()))

    def _token(self) -> str:
        return mint(self._secret, "cluster", ["notify"], _NOTICE_TOKEN_TTL_S)
