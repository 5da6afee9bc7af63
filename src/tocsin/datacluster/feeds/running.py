"""A feed that runs, fails, waits and runs again, and never takes the process with it.

::

    starting ──▶ running ──▶ retrying ──▶ running …
        └───────────┴────────────┴──▶ stopped

One thread a feed starts its streaming query and waits for its end. A query that ends by itself has
failed: the thread keeps the reason, waits (1 s, then twice as long each time, at most a minute) and
starts it again from the checkpoint. A batch that got through ends the back-off.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from tocsin.clock import Clock, SystemClock
from tocsin.datacluster.feeds.batches import Delivered

log = logging.getLogger(__name__)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class FeedState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class FeedStatus:
    """What ``SHOW FEEDS`` tells; counts are since the feed was started in this process."""

    state: FeedState = FeedState.STARTING
    last_batch: int | None = None
    last_batch_at: float | None = None
    records: int = 0
    rejected: int = 0
    input_rows_per_s: float = 0.0
    failures: int = 0
    error: str | None = None


class Query(Protocol):
    """A started streaming query, as much of it as is needed here."""

    def wait(self) -> None:
        """Return when it was stopped; raise what it failed of."""

    def stop(self) -> None: ...

    def finish_available(self) -> None:
        """Return when what is in the source now has been delivered; raise if the query failed."""

    def rows_per_s(self) -> float: ...


OnBatch = Callable[[int, Delivered], None]


class RunningFeed:
    """A supervised streaming query; ``start_query`` is called again after each failure."""

    def __init__(
        self,
        name: str,
        start_query: Callable[[OnBatch], Query],
        describe: Callable[[Exception], str] = str,
        clock: Clock | None = None,
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self.name = name
        self._start_query, self._describe, self._clock = start_query, describe, clock or SystemClock()
        self._first_pause_s = self._pause_s = first_pause_s
        self._status = FeedStatus()
        self._query: Query | None = None
        self._changed, self._stopping = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name=f"feed-{name}", daemon=True)
        self._thread.start()

    def status(self) -> FeedStatus:
        with self._changed:
            status, query = self._status, self._query
        return replace(status, input_rows_per_s=query.rows_per_s()) if query else status

    def stop(self) -> None:
        """Stop after at most the batch under way; the next start continues from there."""
        with self._changed:
            self._stopping = True
            query = self._query
            self._changed.notify_all()
        if query:
            query.stop()
        self._thread.join()

    def await_idle(self, timeout_s: float = 60.0) -> None:
        """Return when all that the source holds now is delivered, through failures if need be."""
        deadline = time.monotonic() + timeout_s
        while True:
            query = self._await_query(deadline)
            try:
                return query.finish_available()
            except Exception as failure:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"feed {self.name!r} did not become idle: {failure}") from failure
                self._await_change_from(query, deadline)

    def _run(self) -> None:
        while not self._stopping:
            try:
                self._run_once()
            except Exception as failure:
                if not self._stopping:
                    self._back_off(failure)
        self._set(state=FeedState.STOPPED)

    def _run_once(self) -> None:
        query = self._start_query(self._delivered)
        with self._changed:
            self._query = query
            self._status = replace(self._status, state=FeedState.RUNNING)
            stopping = self._stopping
            self._changed.notify_all()
        if stopping:
            query.stop()
        query.wait()
        if not self._stopping:
            raise RuntimeError("its query was ended from outside")

    def _delivered(self, batch_id: int, batch: Delivered) -> None:
        self._pause_s = self._first_pause_s
        if self._status.error is not None:
            log.info("feed %s delivers again", self.name)
        self._set(
            last_batch=batch_id,
            last_batch_at=self._clock.now(),
            records=self._status.records + batch.records,
            rejected=self._status.rejected + batch.rejected,
            error=None,
        )

    def _back_off(self, failure: Exception) -> None:
        error = self._describe(failure)
        if error != self._status.error:  # once for each reason, not for each attempt
            log.warning("feed %s failed and is started again until it runs: %s", self.name, error)
        with self._changed:
            self._query = None
            failures = self._status.failures + 1
            self._status = replace(self._status, state=FeedState.RETRYING, failures=failures, error=error)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopping, timeout=self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _set(self, **changes: object) -> None:
        with self._changed:
            self._status = replace(self._status, **changes)  # type: ignore[arg-type]
            self._changed.notify_all()

    def _await_query(self, deadline: float) -> Query:
        with self._changed:
            self._changed.wait_for(lambda: self._query or self._stopping, timeout=deadline - time.monotonic())
            if self._query is None:
                problem = self._status.error or "it was stopped"
                raise TimeoutError(f"feed {self.name!r} did not become idle: {problem}")
            return self._query

    def _await_change_from(self, query: Query, deadline: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._query is not query, timeout=deadline - time.monotonic())
