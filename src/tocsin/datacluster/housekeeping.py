"""What happens in the background: compaction, retention, the next base of busy indexes.

One thread, one thing at a time, at low frequency; a failure is logged and tried again next round.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tocsin.clock import Clock
from tocsin.datacluster.channel import Channel
from tocsin.datacluster.channels import Channels
from tocsin.datacluster.datasets import Datasets
from tocsin.datacluster.storage import executions, subscriptions
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.results import ResultStore
from tocsin.errors import NotFound
from tocsin.model.catalog import Retention

log = logging.getLogger(__name__)
_SWEEP_EVERY = 12  # rounds: it looks at every result file


class Housekeeping:
    def __init__(
        self, ledger: Ledger, datasets: Datasets, channels: Channels, results: ResultStore, clock: Clock,
        default_retain: Retention, interval_s: float,
    ) -> None:  # fmt: skip
        self._ledger, self._datasets, self._channels, self._results = ledger, datasets, channels, results
        self._clock, self._default_retain, self._interval_s = clock, default_retain, interval_s
        self._stop = threading.Event()
        self._rounds = 0
        self._thread = threading.Thread(target=self._loop, name="housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def round(self) -> None:
        """Do everything that is due once."""
        for channel in list(self._channels.values()):
            self._guard(f"index of {channel.spec.name}", lambda c=channel: self.compact_index(c))  # type: ignore[misc]
            self._guard(f"results of {channel.spec.name}", lambda c=channel: self._expire_results(c))  # type: ignore[misc]
        if self._rounds % _SWEEP_EVERY == 0:
            self._guard("left-over results", self._results.sweep)
        self._rounds += 1
        self._guard("progress of datasets", self._datasets.note_progress)
        for name in list(self._datasets):
            self._guard(f"dataset {name}", lambda n=name: self._tidy_dataset(n))  # type: ignore[misc]

    def compact_index(self, channel: Channel) -> None:
        """Make the next base of a channel's subscriptions when enough has changed.

        Parameter sets that nobody held when it was made are not in it, and need not be told from it any more.
        """
        if channel.subscriptions.needs_compaction():
            watermark = self._ledger.write(subscriptions.current_version)
            if channel.subscriptions.compact(watermark):
                self._ledger.write(lambda tx: subscriptions.purge(tx, channel.id, watermark))

    def _expire_results(self, channel: Channel) -> None:
        own, default = channel.spec.retain, self._default_retain
        retain = Retention(own.age_s or default.age_s, own.records, own.size_bytes or default.size_bytes)
        self._results.expire(channel.id, retain, self._clock.now())

    def _tidy_dataset(self, name: str) -> None:
        if name not in self._datasets:
            return
        store = self._datasets[name]
        head = store.head  # before the windows: a channel that comes meanwhile begins at or after it
        oldest = self._ledger.read(lambda tx: executions.keep_from(tx, store.id))
        store.keep_from(oldest if oldest is not None else head)
        store.compact()
        store.expire(self._clock.now())

    def _loop(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.round()

    def _guard(self, what: str, work: Callable[[], object]) -> None:
        if self._stop.is_set():
            return
        try:
            work()
        except NotFound:
            log.debug("%s was dropped meanwhile", what)
        except Exception:
            log.exception("housekeeping of %s failed; it is tried again", what)
