"""SHOW, DESCRIBE, EXPLAIN and the views that REST lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tocsin.datacluster.brokers import Brokers
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.dead_letters import DEAD_LETTERS
from tocsin.datacluster.explain import explanation
from tocsin.datacluster.feeding import Feeding
from tocsin.datacluster.notifier import Notifier
from tocsin.datacluster.service import Answer, BrokerView, ChannelView, DatasetView
from tocsin.datacluster.spark.prepared import PreparedChannel
from tocsin.datacluster.storage import executions, outbox, subscriptions
from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.subscribing import Subscribing
from tocsin.datacluster.ticker import Ticker
from tocsin.errors import NotFound
from tocsin.language.printer import retention_sql, to_sql
from tocsin.language.statements import CreateChannel, CreateDataset, Shown
from tocsin.model.types import SqlType
from tocsin.tokens import Principal
from tocsin.units import counted, format_duration

JoinPlanOf = Callable[[PreparedChannel], str | None]
_RECENT = 10
_LISTED = 1000
_MOMENT = SqlType("TIMESTAMP")
_DATASETS = ("dataset", "kind", "records", "head", "rejected", "retain", "problem")
_CHANNELS = ("channel", "mode", "state", "strategy", "subscriptions", "backends", "executions", "lag_s", "problem")
_BROKERS = ("broker", "url", "subscriptions", "waiting", "problem")
_FEEDS = ("feed", "dataset", "kind", "state", "records", "problem")
_SUBSCRIPTIONS = ("subscription", "channel", "broker", "backend", "arguments", "owner")
_EXECUTIONS = ("channel", "execution", "state", "considered", "matched", "rows", "ms", "problem")


class Showing:
    def __init__(
        self, ledger: Ledger, datasets: Datasets, channels: Channels, brokers: Brokers, feeds: Feeding,
        subscribing: Subscribing, ticker: Ticker, notifier: Notifier, join_plan: JoinPlanOf,
    ) -> None:  # fmt: skip
        self._join_plan = join_plan
        self._ledger, self._datasets, self._channels, self._brokers = ledger, datasets, channels, brokers
        self._feeds, self._subscribing, self._ticker, self._notifier = feeds, subscribing, ticker, notifier

    def datasets(self) -> list[DatasetView]:
        rejected = self._datasets.rejected()
        return [self._dataset(s, rejected.get(s.spec.name.lower(), 0)) for s in self._datasets.values()]

    def channels(self) -> list[ChannelView]:
        return [self._channel(channel) for channel in self._channels.values()]

    def brokers(self) -> list[BrokerView]:
        held, waiting = self._ledger.read(lambda tx: (subscriptions.held_by_broker(tx), outbox.waiting(tx)))
        return [
            BrokerView(
                r.spec.name, r.spec.url, held.get(r.id, 0), waiting.get(r.id, 0), self._notifier.problems.get(r.id)
            )
            for r in self._brokers.all()
        ]

    def explain(self, name: str) -> dict[str, Any]:
        channel = self._channels[name]
        recent = self._ledger.read(lambda tx: executions.recent(tx, channel.id, _RECENT))
        return explanation(channel, recent, self._ticker.lag_s(channel), self._ticker.coalesced(channel))

    def show(self, what: Shown, name: str | None, who: Principal) -> Answer:
        match what:
            case Shown.DATASETS:
                return _table(_DATASETS, [self._dataset_row(d) for d in self.datasets()])
            case Shown.CHANNELS:
                return _table(_CHANNELS, [self._channel_row(c) for c in self.channels()])
            case Shown.BROKERS:
                views = self.brokers()
                return _table(_BROKERS, [(b.name, b.url, b.subscriptions, b.waiting_notices, b.problem) for b in views])
            case Shown.FEEDS:
                feeds = self._feeds.views()
                return _table(_FEEDS, [(f.name, f.dataset, f.kind, f.state, f.records, f.problem) for f in feeds])
            case Shown.SUBSCRIPTIONS:
                found = self._subscribing.list(who, name, None, _LISTED + 1, None)
                rows = [(s.id, s.channel, s.broker, s.backend, dict(s.arguments), s.owner) for s in found]
                return _table(_SUBSCRIPTIONS, rows[:_LISTED], is_truncated=len(rows) > _LISTED)
            case Shown.EXECUTIONS:
                return self._executions(name)
            case Shown.DEAD_LETTERS:
                return self._dead_letters(name)

    def spark_plan(self, name: str) -> str | None:
        """How Spark joins a channel's records with its subscriptions, where that is what happens."""
        channel = self._channels[name]
        return self._join_plan(channel.prepared) if channel.strategy == "join" else None

    def describe(self, name: str, kind: str | None) -> Answer:
        """Names and types, under the statement that would make it again."""
        if kind != "channel" and name in self._datasets:
            spec = self._datasets[name].spec
            rows = [(c.name, str(c.type), "key" if c.name in spec.primary_key else "not null" if c.not_null else "")
                    for c in spec.columns]  # fmt: skip
            return Answer("table", to_sql(CreateDataset(spec)), ("column", "type", "constraint"), tuple(rows))
        if kind != "dataset" and name in self._channels:
            channel = self._channels[name].spec
            rows = [(p.name, str(p.type), "parameter") for p in channel.parameters]
            rows += [(c, kind, "result") for c, kind in self._channels[name].prepared.result_types]
            return Answer("table", to_sql(CreateChannel(channel)), ("name", "type", "role"), tuple(rows))
        known = [s.name for s in self._datasets.specs().values()] + [c.spec.name for c in self._channels.values()]
        raise NotFound(kind or "dataset or channel", name, known)

    def _dataset(self, store: DatasetStore, rejected: int) -> DatasetView:
        spec = store.spec
        return DatasetView(
            spec.name, tuple((c.name, str(c.type)) for c in spec.columns), spec.primary_key, spec.active,
            retention_sql(spec.retain), store.count, store.head, rejected, store.problem,
        )  # fmt: skip

    def _channel(self, channel: Channel) -> ChannelView:
        spec = channel.spec
        mode = "continuous" if spec.continuous else f"every {format_duration(spec.period_s or 0)}"
        problem = self._faulted(channel) or channel.problem
        state = "paused" if channel.is_paused else "failing" if problem else "running"
        problem = problem or self._ticker.waits_for(channel)
        return ChannelView(
            spec.name, tuple((p.name, str(p.type)) for p in spec.parameters), mode, spec.push, state, channel.strategy,
            channel.subscriptions.subscriptions, channel.subscriptions.backends, channel.head,
            self._ticker.lag_s(channel), problem, spec.query,
        )  # fmt: skip

    def _faulted(self, channel: Channel) -> str | None:
        """Why a channel cannot go on, whether or not something new has come: a dataset is out of order."""
        stores = (self._datasets[name] for name in channel.prepared.plan.datasets if name in self._datasets)
        return next((f"dataset {s.spec.name}: {s.problem}" for s in stores if s.is_faulted), None)

    def _dataset_row(self, d: DatasetView) -> tuple[Any, ...]:
        kind = f"keyed by {', '.join(d.primary_key)}" if d.primary_key else "appending"
        return (d.name, f"active, {kind}" if d.is_active else kind, d.records, d.head, d.rejected, d.retain, d.problem)

    def _channel_row(self, c: ChannelView) -> tuple[Any, ...]:
        return (
            c.name,
            c.mode,
            c.state,
            c.strategy,
            c.subscriptions,
            c.backends,
            c.executions,
            round(c.lag_s, 2),
            c.problem,
        )

    def _executions(self, name: str | None) -> Answer:
        channels = [self._channels[name]] if name else list(self._channels.values())
        rows = [row for channel in channels for row in self._recent(channel)]
        return _table(_EXECUTIONS, rows)

    def _recent(self, channel: Channel) -> list[tuple[Any, ...]]:
        found = self._ledger.read(lambda tx: executions.recent(tx, channel.id, _RECENT))
        return [
            (channel.spec.name, e.execution.no, e.state, e.stats.considered, e.stats.matched, e.stats.rows,
             round(e.stats.duration_s * 1000, 1), e.problem)
            for e in found
        ]  # fmt: skip

    def _dead_letters(self, dataset: str | None) -> Answer:
        letters = self._datasets[DEAD_LETTERS.name].now().to_pylist()
        chosen = [r for r in letters if dataset is None or r["dataset"].lower() == dataset.lower()]
        if dataset is not None and not chosen:
            _ = self._datasets[dataset]  # NotFound where there is none; letters outlive their dataset
        rows = [(r["dataset"], r["reason"], r["raw"], _MOMENT.to_json(r["at"])) for r in chosen[-_LISTED:]]
        return _table(("dataset", "reason", "raw", "at"), rows, is_truncated=len(chosen) > _LISTED)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_truncated: bool = False) -> Answer:
    return Answer("table", counted(len(rows), "row"), tuple(columns), tuple(tuple(r) for r in rows), is_truncated)
