"""The channels of a running cluster: made, replaced, paused, dropped, and opened again at a start."""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.clock import Clock
from tocsin.compiler.channel import CompileOptions, compile_channel
from tocsin.datacluster.channel import Channel, stored_progress
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.ordered import write_then_apply
from tocsin.datacluster.spark.prepared import PreparedChannel, prepare, unprepared
from tocsin.datacluster.storage import catalog, executions
from tocsin.datacluster.storage.columns import with_column
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.transaction import Tx
from tocsin.datacluster.subscribers import Subscribers, index_spec
from tocsin.datacluster.ticker import Ticker
from tocsin.errors import AlreadyExists, BadArgument, NotFound, Span, StatementError
from tocsin.matching.maintain import CompactionRule
from tocsin.model.catalog import ChannelSpec, Column, DatasetSpec

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Heir:
    """``version`` is the ledger's up to which its own index is loaded; ``None`` if it shares the old one."""

    subscribers: Subscribers
    version: int | None

    def caught_up(self, tx: Tx, channel_id: int) -> Subscribers:
        if self.version is not None:
            self.subscribers.load_backends(tx, channel_id, self.version)
        return self.subscribers


class Channels(Mapping[str, Channel]):
    """Live channels by lower-case name."""

    def __init__(
        self, root: Path, ledger: Ledger, datasets: Datasets, spark: SparkSession, ticker: Ticker, clock: Clock,
        options: CompileOptions, min_period_s: float, rule: CompactionRule,
    ) -> None:  # fmt: skip
        self._rule = rule
        self._root, self._ledger, self._datasets, self._spark = root, ledger, datasets, spark
        self._ticker, self._clock, self._options, self._min_period_s = ticker, clock, options, min_period_s
        self._channels: dict[str, Channel] = {}
        self._lock = threading.RLock()
        self.on_drop: Callable[[str], None] = lambda _: None
        self.on_change: Callable[[], None] = lambda: None  # from now on a name stands for nothing, or another query

    def __getitem__(self, name: str) -> Channel:
        try:
            return self._channels[name.lower()]
        except KeyError:
            raise NotFound("channel", name, [c.spec.name for c in self._channels.values()]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._channels))

    def __len__(self) -> int:
        return len(self._channels)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._channels

    def by_id(self, channel_id: int) -> Channel | None:
        return next((c for c in list(self._channels.values()) if c.id == channel_id), None)

    def open(self) -> None:
        """Open every channel of the catalog where it stood; one that no longer compiles is failing."""
        for row in self._ledger.read(catalog.list_channels):
            try:
                channel = self._open(row, self.prepare(row.spec, None))
                self._sweep(channel)
                self._enter(channel)
            except StatementError as problem:
                log.error("channel %s can no longer be compiled: %s", row.spec.name, problem)
                self._channels[row.spec.name.lower()] = self._open_broken(row, str(problem))

    def prepare(
        self, spec: ChannelSpec, where: Span | None, changed: Mapping[str, DatasetSpec] | None = None
    ) -> PreparedChannel:
        """Compile and have Spark accept it, with datasets as they are ``changed``; changes nothing itself."""
        datasets = {**self._datasets.specs(), **(changed or {})}
        plan = compile_channel(spec, datasets, replace(self._options, query_start=where))
        return prepare(self._spark, spec, plan, datasets)

    def create(self, spec: ChannelSpec, where: Span | None) -> None:
        with self._lock, self._datasets.lock:
            if spec.name in self:
                raise AlreadyExists("channel", spec.name)
            self._check_period(spec)
            prepared = self.prepare(spec, where)
            row = self._ledger.write(lambda tx: self._create(tx, prepared))
            self._enter(self._open(row, prepared))

    def replace(self, spec: ChannelSpec, where: Span | None) -> bool:
        """Exchange the query; gives whether the subscriptions were kept, as they are if the parameters stay."""
        with self._lock, self._datasets.lock:
            old = self[spec.name]
            self._check_period(spec)
            prepared = self.prepare(spec, where)
            is_kept = old.spec.parameters == spec.parameters
            self._exchange(old, prepared, self._replace if is_kept else self._drop_and_create)
            return is_kept

    def _exchange(
        self,
        old: Channel,
        prepared: PreparedChannel,
        write: Callable[[Tx, Channel, PreparedChannel], catalog.ChannelRow],
    ) -> None:
        with self._taken_out(old):
            heir = self._heir(old, prepared)
            write_then_apply(
                self._ledger,
                lambda tx: write(tx, old, prepared),
                lambda row: self._apply_exchange(row, old, prepared, heir),
            )
            self._leave(old, heir)
        self.on_change()

    def _heir(self, old: Channel, prepared: PreparedChannel) -> _Heir | None:
        """Who takes the old subscriptions over, loaded here since that may take long; ``None`` where none are kept."""
        if old.spec.parameters != prepared.spec.parameters:
            return None
        directory = self._index_directory(old.id, prepared)
        subscribers = old.subscriptions.heir(prepared.spec, prepared.plan, directory, self._spark)
        if subscribers.shares_index(old.subscriptions):
            return _Heir(subscribers, None)
        return _Heir(subscribers, self._ledger.read(lambda tx: subscribers.load_backends(tx, old.id)))

    def _apply_exchange(
        self, row: catalog.ChannelRow, old: Channel, prepared: PreparedChannel, heir: _Heir | None
    ) -> None:
        """Runs in the ledger's thread, so no subscription can slip between the old state and the new.

        Everybody's writes wait for it: nothing is done here that asks Spark or waits for a channel's lock.
        """
        if heir is None:
            channel = self._open(row, prepared)
        else:
            heir.subscribers.inherit(old.subscriptions)
            channel = self._ledger.read(lambda tx: self._loaded(tx, row, prepared, heir.caught_up(tx, row.id)))
        self._channels[row.spec.name.lower()] = channel

    def _leave(self, old: Channel, heir: _Heir | None) -> None:
        """Let go what the old query had for itself."""
        old.subscriptions.drop(heir.subscribers if heir else None)
        if heir is None:
            shutil.rmtree(self._directory(old.id), ignore_errors=True)
        elif heir.version is not None:
            shutil.rmtree(self._index_directory(old.id, old.prepared), ignore_errors=True)

    def drop(self, name: str, *, cascade: bool = False) -> None:
        """End a channel; InUse while somebody is subscribed, unless the subscriptions are to go with it."""
        with self._lock:
            channel = self[name]
            if not cascade:  # asked before its execution is cancelled, and again when it is dropped
                self._ledger.read(lambda tx: catalog.refuse_subscribed(tx, catalog.get_channel(tx, name)))
            with self._taken_out(channel):
                self._ledger.write(lambda tx: catalog.drop_channel(tx, channel.spec.name, cascade=cascade))
                del self._channels[name.lower()]
                channel.subscriptions.drop()
            shutil.rmtree(self._directory(channel.id), ignore_errors=True)
            self.on_drop(channel.spec.name)
            self.on_change()

    @contextmanager
    def _taken_out(self, channel: Channel) -> Iterator[None]:
        """Nothing runs for a channel, no compaction either; afterwards what goes by its name is scheduled."""
        name = channel.spec.name.lower()
        self._ticker.remove(channel)
        try:
            with channel.subscriptions.steady():
                yield
        finally:
            if name in self._channels:
                self._enter(self._channels[name])

    def pause(self, name: str) -> None:
        with self._lock:
            channel = self[name]
            self._ledger.write(lambda tx: catalog.set_channel_state(tx, channel.spec.name, catalog.PAUSED))
            channel.is_paused = True
            self._ticker.pause(channel)

    def resume(self, name: str) -> None:
        """Go on; a channel that did not compile when the cluster started is compiled again."""
        with self._lock:
            channel = self[name]
            if channel.is_broken:
                self._exchange(channel, self.prepare(channel.spec, None), self._replace)
            self._ledger.write(lambda tx: catalog.set_channel_state(tx, channel.spec.name, catalog.RUNNING))
            self[name].is_paused = False
            self._ticker.resume(self[name])

    def _enter(self, channel: Channel) -> None:
        self._channels[channel.spec.name.lower()] = channel
        if not channel.is_broken:
            self._ticker.add(channel)

    def users_of(self, dataset: str) -> list[str]:
        """Channels that read a dataset."""
        return [f"channel {c.spec.name}" for c in self.values() if dataset.lower() in _read_by(c.prepared)]

    def add_column(self, dataset: str, column: Column) -> None:
        """Add a column to a dataset, unless a channel that reads it would no longer compile."""
        name = dataset.lower()
        with self._lock, self._datasets.lock:
            changed = with_column(self._datasets.writable(dataset).spec, column)
            readers = [c for c in self.values() if name in _read_by(c.prepared) and not c.is_broken]
            prepared = [self.prepare(c.spec, None, {name: changed}) for c in readers]
            self._datasets.add_column(dataset, column)
            for channel, again in zip(readers, prepared, strict=True):
                channel.prepared = again

    def _check_period(self, spec: ChannelSpec) -> None:
        if spec.period_s is not None and spec.period_s < self._min_period_s:
            raise BadArgument("PERIOD", f"at least {self._min_period_s} s", spec.period_s)

    def _create(self, tx: Tx, prepared: PreparedChannel) -> catalog.ChannelRow:
        row = catalog.create_channel(tx, prepared.spec, self._clock.now())
        for dataset in _drivers(prepared):
            store = self._datasets[dataset]
            executions.open_window(tx, row.id, store.id, store.head)
        return row

    def _replace(self, tx: Tx, old: Channel, prepared: PreparedChannel) -> catalog.ChannelRow:
        """The new query goes on where the old one stood; a dataset that drives only now starts at its head."""
        executions.abandon(tx, old.id, self._clock.now())
        before, after = set(_drivers(old.prepared)), set(_drivers(prepared))
        for dataset in before - after:
            executions.close_window(tx, old.id, self._datasets[dataset].id)
        for dataset in after - before:
            store = self._datasets[dataset]
            executions.open_window(tx, old.id, store.id, store.head)
        return catalog.replace_channel(tx, prepared.spec)

    def _drop_and_create(self, tx: Tx, old: Channel, prepared: PreparedChannel) -> catalog.ChannelRow:
        catalog.drop_channel(tx, old.spec.name, cascade=True)
        return self._create(tx, prepared)

    def _open_broken(self, row: catalog.ChannelRow, problem: str) -> Channel:
        """A channel without a plan: it keeps its subscriptions and windows, and is never scheduled."""
        names = {store.id: store.spec.name for store in self._datasets.values()}
        drivers = [names[dataset] for dataset in self._ledger.read(lambda tx: executions.windows(tx, row.id))]
        channel = self._open(row, unprepared(row.spec, drivers, problem))
        channel.is_broken, channel.problem = True, problem
        return channel

    def _open(self, row: catalog.ChannelRow, prepared: PreparedChannel) -> Channel:
        directory = self._index_directory(row.id, prepared)
        subscribers = Subscribers(row.spec, prepared.plan, directory, self._spark, self._rule)

        def work(tx: Tx) -> Channel:
            subscribers.load(tx, row.id)
            return self._loaded(tx, row, prepared, subscribers)

        return self._ledger.read(work)

    def _loaded(self, tx: Tx, row: catalog.ChannelRow, prepared: PreparedChannel, subscribers: Subscribers) -> Channel:
        at = stored_progress(tx, row.id, self._datasets)
        is_paused = row.state == catalog.PAUSED
        return Channel(row.id, prepared, subscribers, at.windows, at.head, at.started, is_paused=is_paused)

    def _directory(self, channel_id: int) -> Path:
        return self._root / str(channel_id)

    def _index_directory(self, channel_id: int, prepared: PreparedChannel) -> Path:
        """Two queries of one channel may have an index each for a while."""
        made_for = repr(index_spec(prepared.spec, prepared.plan))
        return self._directory(channel_id) / hashlib.blake2b(made_for.encode(), digest_size=8).hexdigest()

    def _sweep(self, channel: Channel) -> None:
        """Delete the indexes of queries that the channel had before."""
        kept = self._index_directory(channel.id, channel.prepared)
        for path in self._directory(channel.id).iterdir():
            if path != kept and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


def _drivers(prepared: PreparedChannel) -> list[str]:
    return list(dict.fromkeys(d.lower() for d in prepared.plan.drivers))


def _read_by(prepared: PreparedChannel) -> set[str]:
    return {d.lower() for d in prepared.plan.datasets}
