"""A channel's subscribers in memory: the distinct parameter sets as an index, and who is attached.

The index holds base, delta and tombstones in files (see ``tocsin.matching.maintain``); what the ledger
changed after the base was made is added again when a channel is opened, so a million subscriptions
start without being rebuilt. A channel that joins uses the same parameter sets as tables.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.compiler.plan import PARAMETER, SUBSCRIPTION, CompiledChannel
from tocsin.datacluster.arguments import values_of
from tocsin.datacluster.attachments import Attachments, Ids
from tocsin.datacluster.coming import Coming
from tocsin.datacluster.spark.subscriptions import SubscriptionTables
from tocsin.datacluster.storage import subscriptions as table
from tocsin.datacluster.storage.transaction import Tx
from tocsin.matching.maintain import CompactionRule, SubscriptionIndex
from tocsin.matching.refs import IndexRef
from tocsin.matching.spec import IndexSpec
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import ChannelSpec

_LOAD_CHUNK = 100_000
_NOBODY: Ids = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Acquired:
    """``removed`` are backend numbers that the join's tables still hold; ``None`` where there are none."""

    ref: IndexRef
    removed: Ids | None


class Subscribers:
    """``index`` is one that is open already, of the same specification (``index_spec``)."""

    def __init__(
        self, spec: ChannelSpec, plan: CompiledChannel, directory: Path, spark: SparkSession, rule: CompactionRule,
        index: SubscriptionIndex | None = None,
    ) -> None:  # fmt: skip
        self._spec = spec
        self._index = index or SubscriptionIndex(index_spec(spec, plan), directory, rule)
        self._tables = None if plan.index else SubscriptionTables(spark, plan.join)
        self._lock = threading.Lock()
        self._held: list[IndexRef] = []
        self.attachments, self.coming = Attachments(), Coming()
        self.subscriptions = 0
        self.backends = 0

    def heir(self, spec: ChannelSpec, plan: CompiledChannel, directory: Path, spark: SparkSession) -> Subscribers:
        """For another query over the same parameters: with this index if it serves, else an empty one."""
        is_same = index_spec(spec, plan) == self._index.spec
        return Subscribers(spec, plan, directory, spark, self._index.rule, self._index if is_same else None)

    def shares_index(self, other: Subscribers) -> bool:
        return self._index is other._index

    def load_backends(self, tx: Tx, channel_id: int, after: int | None = None) -> int:
        """Bring the index from version ``after``, by default its base's, to the ledger's, which is given."""
        chunk: list[table.BackendRow] = []
        for row in table.backends_since(tx, channel_id, self._index.watermark if after is None else after):
            chunk.append(row)
            if len(chunk) >= _LOAD_CHUNK:
                self._apply(chunk)
                chunk = []
        self._apply(chunk)
        return table.current_version(tx)

    def inherit(self, old: Subscribers) -> None:
        """Take over who is attached; the index is loaded or shared."""
        self.attachments, self.coming = old.attachments, old.coming
        self.subscriptions, self.backends = old.subscriptions, old.backends

    def load(self, tx: Tx, channel_id: int) -> None:
        """Bring memory to the ledger's state."""
        self.load_backends(tx, channel_id)
        counts = table.counts(tx, channel_id)
        self.subscriptions, self.backends = counts.subscriptions, counts.backends
        rows = np.array(list(table.attachments(tx, channel_id)), np.int64).reshape(-1, 3)
        for broker in np.unique(rows[:, 1]):
            mine = rows[rows[:, 1] == broker]
            self.attachments.attach(int(broker), mine[:, 0].astype(np.uint32), mine[:, 2])

    def add(self, backends: Ids, values: Sequence[Sequence[Any]], subscriptions: int) -> None:
        """New backend subscriptions with their parameter values, and how many subscriptions came."""
        if len(backends):
            self._index.add(backends, self._columns(values))
        with self._lock:
            self.subscriptions += subscriptions
            self.backends += len(backends)

    def remove(self, backends: Ids, subscriptions: int) -> None:
        if len(backends):
            self._index.remove(backends)
        with self._lock:
            self.subscriptions -= subscriptions
            self.backends -= len(backends)

    def acquire(self) -> Acquired:
        """The state for one execution; ``release`` it afterwards."""
        if self._tables is None:
            ref = self._index.snapshot()
            self._hold(ref)
            return Acquired(ref, None)
        ref, parts = self._index.snapshot_parts()
        self._hold(ref)
        base = parts.base
        self._tables.register(
            base.serial if base else 0,
            lambda: self._named(base.index.ids, base.params()) if base else self._named(_NOBODY, self._nothing()),
            self._named(parts.added_ids, parts.added),
        )
        return Acquired(ref, parts.removed if len(parts.removed) else None)

    def _hold(self, ref: IndexRef) -> None:
        with self._lock:
            self._held.append(ref)

    def release(self) -> None:
        with self._lock:
            held, self._held = self._held, []
        for ref in held:
            self._index.release(ref.version)

    def needs_compaction(self) -> bool:
        return self._index.needs_compaction()

    def compact(self, watermark: int) -> bool:
        """Make the next base, which holds everything up to the ledger's version ``watermark``; whether it did."""
        return self._index.compact(watermark)

    def steady(self) -> AbstractContextManager[object]:
        """While this is held no base is being written; taking it waits for one that is."""
        return self._index.steady()

    def drop(self, heir: Subscribers | None = None) -> None:
        """Call it within ``steady``: the files may be deleted afterwards, unless an heir shares the index."""
        if self._tables is not None:
            self._tables.drop()
        if heir is None or not self.shares_index(heir):
            self._index.close()

    def _apply(self, rows: Sequence[table.BackendRow]) -> None:
        live = [r for r in rows if r.active]
        gone = [r.no for r in rows if not r.active]
        if live:
            values = [values_of(self._spec, r.params_key) for r in live]
            self._index.add(np.array([r.no for r in live], np.uint32), self._columns(values))
        if gone:
            self._index.remove(np.array(gone, np.uint32))

    def _columns(self, values: Sequence[Sequence[Any]]) -> dict[str, pa.Array]:
        return {
            p.name: pa.array([v[i] for v in values], arrow_type(p.type)) for i, p in enumerate(self._spec.parameters)
        }

    def _named(self, ids: Ids, params: pa.Table) -> pa.Table:
        columns = {SUBSCRIPTION: pa.array(ids.astype(np.int32))}
        return pa.table(columns | {PARAMETER + p.name: params.column(p.name) for p in self._spec.parameters})

    def _nothing(self) -> pa.Table:
        return pa.schema([(p.name, arrow_type(p.type)) for p in self._spec.parameters]).empty_table()


def index_spec(spec: ChannelSpec, plan: CompiledChannel) -> IndexSpec:
    """What a channel's index is made for."""
    return plan.index.spec if plan.index else _no_predicates(spec)


def _no_predicates(spec: ChannelSpec) -> IndexSpec:
    """For channels that join: the index only keeps the parameter sets."""
    return IndexSpec((), (), tuple((p.name, p.type) for p in spec.parameters))
