"""The feeds of a running cluster. An HTTP feed is a name for pushing; the others are streaming queries."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tocsin.clock import Clock
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.feeds.options import DirectoryOptions, feed_options
from tocsin.datacluster.feeds.running import RunningFeed
from tocsin.datacluster.feeds.stream import start_feed
from tocsin.datacluster.fence import fenced
from tocsin.datacluster.service import FeedView
from tocsin.datacluster.storage import catalog
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.parse_records import BadRecord
from tocsin.errors import AlreadyExists, BadArgument, NotFound, TocsinError
from tocsin.model.catalog import FeedSpec

log = logging.getLogger(__name__)
HTTP = "http"


class Feeding:
    """A directory feed reads below ``load_root``, and none may be made where that is not given."""

    def __init__(
        self, root: Path, ledger: Ledger, datasets: Datasets, spark: SparkSession, clock: Clock, load_root: Path | None
    ) -> None:
        self._load_root = load_root
        self._root, self._ledger, self._datasets, self._spark, self._clock = root, ledger, datasets, spark, clock
        self._lock = threading.RLock()
        self._rows: dict[str, catalog.FeedRow] = {}
        self._running: dict[str, RunningFeed] = {}
        self._problems: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._rows

    def open(self) -> None:
        for row in self._ledger.read(catalog.list_feeds):
            self._rows[row.spec.name.lower()] = row
            if row.state == catalog.RUNNING:
                self._start_again(row)

    def _start_again(self, row: catalog.FeedRow) -> None:
        """A feed that cannot start is reported, and the cluster starts without it."""
        try:
            self._start(row)
        except TocsinError as problem:
            log.error("feed %s did not start: %s", row.spec.name, problem)
            self._problems[row.spec.name.lower()] = str(problem)

    def close(self) -> None:
        for feed in list(self._running.values()):
            feed.stop()

    def create(self, spec: FeedSpec) -> None:
        with self._lock, self._datasets.lock:
            if spec.name in self:
                raise AlreadyExists("feed", spec.name)
            store = self._datasets.writable(spec.dataset)
            self._resolved(spec)
            named = FeedSpec(spec.name, store.spec.name, spec.kind, spec.options)
            row = self._ledger.write(lambda tx: catalog.create_feed(tx, named, self._clock.now()))
            self._rows[spec.name.lower()] = row
            try:
                self._start(row)
            except Exception:
                self._forget(row)
                raise

    def drop(self, name: str) -> None:
        with self._lock:
            row = self._row(name)
            self._stop(row)
            self._forget(row)

    def pause(self, name: str) -> None:
        with self._lock:
            row = self._row(name)
            self._stop(row)
            self._rows[name.lower()] = self._set_state(row, catalog.PAUSED)

    def resume(self, name: str) -> None:
        with self._lock:
            row = self._row(name)
            if name.lower() not in self._running:
                self._start(row)
            self._rows[name.lower()] = self._set_state(row, catalog.RUNNING)

    def users_of(self, dataset: str) -> list[str]:
        rows = list(self._rows.values())
        return [f"feed {r.spec.name}" for r in rows if r.spec.dataset.lower() == dataset.lower()]

    def views(self) -> list[FeedView]:
        return [self._view(row) for row in list(self._rows.values())]

    def _view(self, row: catalog.FeedRow) -> FeedView:
        running = self._running.get(row.spec.name.lower())
        if running is None:
            problem = self._problems.get(row.spec.name.lower())
            state = "paused" if row.state == catalog.PAUSED else "stopped" if problem else "waiting for pushes"
            return FeedView(row.spec.name, row.spec.dataset, row.spec.kind, state, 0, problem)
        status = running.status()
        return FeedView(row.spec.name, row.spec.dataset, row.spec.kind, status.state, status.records, status.error)

    def _row(self, name: str) -> catalog.FeedRow:
        try:
            return self._rows[name.lower()]
        except KeyError:
            raise NotFound("feed", name, [r.spec.name for r in list(self._rows.values())]) from None

    def _set_state(self, row: catalog.FeedRow, state: str) -> catalog.FeedRow:
        return self._ledger.write(lambda tx: catalog.set_feed_state(tx, row.spec.name, state))

    def _start(self, row: catalog.FeedRow) -> None:
        if row.spec.kind == HTTP:
            return
        store = self._datasets[row.spec.dataset]
        sink = _Sink(self._datasets, row.spec.dataset)
        running = start_feed(self._spark, self._resolved(row.spec), lambda: store.spec, sink, self._directory(row))
        self._running[row.spec.name.lower()] = running
        self._problems.pop(row.spec.name.lower(), None)

    def _resolved(self, spec: FeedSpec) -> FeedSpec:
        """The checked declaration, a directory as an absolute path that is there."""
        options = feed_options(spec) if spec.kind != HTTP else None
        if not isinstance(options, DirectoryOptions):
            return spec
        place = fenced(self._load_root, options.path, "a directory feed")
        if not place.is_dir():
            raise BadArgument("feed option path", "a directory that exists on the server", str(place))
        given = [(name, str(place) if name.lower() == "path" else value) for name, value in spec.options]
        return replace(spec, options=tuple(given))

    def _stop(self, row: catalog.FeedRow) -> None:
        running = self._running.pop(row.spec.name.lower(), None)
        if running is not None:
            running.stop()

    def _forget(self, row: catalog.FeedRow) -> None:
        self._ledger.write(lambda tx: catalog.drop_feed(tx, row.spec.name))
        del self._rows[row.spec.name.lower()]
        shutil.rmtree(self._directory(row), ignore_errors=True)

    def _directory(self, row: catalog.FeedRow) -> Path:
        return self._root / str(row.id)


class _Sink:
    """Where a feed's batches go: the dataset, and its dead letters."""

    def __init__(self, datasets: Datasets, dataset: str) -> None:
        self._datasets, self._dataset = datasets, dataset

    def append(self, table: pa.Table, key: str) -> None:
        self._datasets.append(self._dataset, table, (), key)

    def reject(self, raw_lines: Sequence[tuple[str, str]], key: str) -> None:
        bad = [BadRecord(place, raw, reason) for place, (raw, reason) in enumerate(raw_lines, 1)]
        self._datasets.bury(self._dataset, bad, key)
