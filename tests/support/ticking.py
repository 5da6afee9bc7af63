"""Channels, executor and ticker as the cluster has them, on a real ledger and real datasets; no Spark evaluates.

The engine is played by ``Evaluating``, which finds nothing, and says what it was asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.clock import SystemClock
from tocsin.compiler.channel import CompileOptions, compile_channel
from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.executor import Executor, Tick
from tocsin.datacluster.schedule import Schedule
from tocsin.datacluster.service import Subscribed, Wanted
from tocsin.datacluster.spark.engine import NOTHING, Outcome, Run
from tocsin.datacluster.spark.jobs import Jobs
from tocsin.datacluster.spark.prepared import PreparedChannel
from tocsin.datacluster.storage.dataset import StoreOptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.subscribing import Subscribing
from tocsin.datacluster.ticker import Ticker
from tocsin.errors import Span
from tocsin.matching.maintain import CompactionRule
from tocsin.matching.refs import open_ref
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, Parameter
from tocsin.model.types import SqlType
from tocsin.tokens import LOCAL_ADMIN

BY_INDEX = "SELECT r.n FROM {dataset} r WHERE r.n = :n"
BY_JOIN = "SELECT r.n FROM {dataset} r WHERE r.n = :n OR r.n = 2 * :n"


class NoSpark:
    """Takes names of jobs and drops views; ``dropped_by`` are the threads that did."""

    def __init__(self) -> None:
        self.dropped_by: list[str] = []
        self.sparkContext = SimpleNamespace(
            setJobGroup=lambda *_, **__: None, setLocalProperty=lambda *_: None, cancelJobGroup=lambda _: None
        )
        self.catalog = SimpleNamespace(dropTempView=self._drop)

    def _drop(self, _: str) -> None:
        self.dropped_by.append(threading.current_thread().name)


class Evaluating:
    """``meanwhile`` happens within an evaluation; ``queries`` are those evaluated, in order.

    ``subscribed`` says of each how many parameter sets its snapshot has.
    """

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.subscribed: list[int] = []
        self.meanwhile: Callable[[str], object] = lambda _: None

    def run_index(self, runs: Sequence[Run]) -> list[Outcome]:
        for run in runs:
            self.queries.append(run.channel.spec.query)
            layers = open_ref(run.index)
            self.subscribed.append(sum(len(one.ids) for one in (layers.base, layers.delta) if one))
            self.meanwhile(run.channel.spec.name)
        return [NOTHING] * len(runs)


class Unanalysed(Channels):
    """Compiles queries without asking Spark for its opinion."""

    def prepare(
        self, spec: ChannelSpec, where: Span | None, changed: Mapping[str, DatasetSpec] | None = None
    ) -> PreparedChannel:
        return PreparedChannel(spec, compile_channel(spec, self._datasets.specs()), "", None)


class Ticking:
    """Active datasets ``Reports`` and ``Alerts`` of one column ``n``; nothing ticks until ``ticker.start()``."""

    def __init__(self, root: Path, ledger: Ledger) -> None:
        self.ledger, self.spark, self.engine = ledger, NoSpark(), Evaluating()
        clock, spark, engine = SystemClock(), *self._stand_ins()
        self.datasets = Datasets(root / "datasets", ledger, clock, StoreOptions(), 1000)
        self.datasets.open()
        for name in ("Reports", "Alerts"):
            self.datasets.create(DatasetSpec(name, (Column("n", SqlType("INT")),), active=True))
        jobs = Jobs(spark, limit_s=60.0, yield_after_s=60.0, end_wait_s=0.5)
        self.executor = Executor(ledger, engine, jobs, self.datasets, root / "results", clock, 1000, 100)
        self.ticks: list[Tick] = []
        self.ticker = Ticker(
            Schedule(0.0, 0.01, 0.01), self.executor, jobs, clock, self.ticks.append, parallel_jobs=1, stop_wait_s=0.05
        )
        self.datasets.on_append = self.ticker.arrived
        self.channels = Unanalysed(
            root / "indexes", ledger, self.datasets, spark, self.ticker, clock, CompileOptions(), 1.0, CompactionRule()
        )
        brokers = Brokers(ledger, clock)
        brokers.create(BrokerSpec("north", "http://127.0.0.1:9/north"))
        self.subscribing = Subscribing(ledger, self.channels, brokers, clock, 1000.0)

    def _stand_ins(self) -> tuple[Any, Any]:
        return self.spark, self.engine

    def create(self, name: str, dataset: str = "Reports", query: str = BY_INDEX) -> Channel:
        """A continuous channel with one subscription."""
        channel = self.create_empty(name, dataset, query)
        channel.subscriptions.add(np.array([1000], np.uint32), [(7,)], 1)
        return channel

    def create_empty(self, name: str, dataset: str = "Reports", query: str = BY_INDEX) -> Channel:
        self.channels.create(spec(name, dataset, query), None)
        return self.channels[name]

    def subscribe(self, channel: str, n: int) -> Subscribed:
        """As the cluster does, for the broker ``north``."""
        return self.subscribing.subscribe(channel, "north", [Wanted([n])], LOCAL_ADMIN)[0]

    def feed(self, dataset: str = "Reports") -> None:
        store = self.datasets[dataset]
        store.append(pa.table({"n": pa.array([1], pa.int32())}))
        self.ticker.arrived(dataset.lower())

    def close(self) -> None:
        self.ticker.stop()
        self.datasets.close()


def spec(name: str, dataset: str = "Reports", query: str = BY_INDEX) -> ChannelSpec:
    return ChannelSpec(name, (Parameter("n", SqlType("INT")),), query.format(dataset=dataset), continuous=True)
