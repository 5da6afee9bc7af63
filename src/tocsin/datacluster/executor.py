"""One tick: from windows to committed results.

For every channel of the group: fix the window, evaluate on Spark, then make the execution visible in
one ledger transaction: result files, advanced windows and notices together. A kill before that leaves
files that nobody names; a kill after it leaves a finished execution.

The row that records a window's bounds is written while Spark already works. That is safe: until the
commit nothing of an execution can be seen, and the commit waits for the bounds. Only where a subscription is being
added at that moment is the row waited for, so that the two agree on whether the execution has it (``coming``).

What the ledger refuses of one channel fails that channel alone, and its memory is read from the ledger again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tocsin.clock import Clock
from tocsin.datacluster.channel import Channel, stored_progress
from tocsin.datacluster.notices import notice_bodies
from tocsin.datacluster.spark.engine import NOTHING, Engine, Outcome, Run, failure
from tocsin.datacluster.spark.jobs import JobEnded, Jobs
from tocsin.datacluster.spark.relations import Window
from tocsin.datacluster.storage import executions
from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.executions import Execution, ExecutionStats
from tocsin.datacluster.storage.files import sync_directory
from tocsin.datacluster.storage.ledger import Ledger
from tocsin.datacluster.storage.outbox import Notice
from tocsin.datacluster.storage.transaction import Tx
from tocsin.errors import ExecutionFailed, ExecutionStopped, TocsinError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tick:
    """How one channel's execution ended."""

    channel: Channel
    has_more: bool
    outcome: Outcome | None = None
    problem: ExecutionFailed | None = None
    duration_s: float = 0.0
    windows: Mapping[str, Window] | None = None

    @property
    def considered(self) -> int:
        """New records that the execution looked at: those of its window, whatever the strategy."""
        return sum(max(0, w.through - w.after) for w in (self.windows or {}).values())

    @property
    def is_stopped(self) -> bool:
        """It was told to stop: nothing is committed, nothing failed, and the window stays as it is."""
        return isinstance(self.problem, ExecutionStopped)


_Ready = tuple[Channel, Mapping[str, Window]]


class Executor:
    def __init__(
        self,
        ledger: Ledger,
        engine: Engine,
        jobs: Jobs,
        stores: Mapping[str, DatasetStore],
        results_root: Path,
        clock: Clock,
        max_window_records: int,
        max_waiting_notices: int,
    ) -> None:
        self._ledger, self._engine, self._jobs, self._stores = ledger, engine, jobs, stores
        self._results_root, self._clock = results_root, clock
        self._max_window_records, self._max_waiting = max_window_records, max_waiting_notices

    def run(self, channels: Sequence[Channel]) -> list[Tick]:
        """Execute channels that share a strategy; those without new data cost nothing."""
        ready, ticks = [], []
        heads = {dataset: self._stores[dataset].head for channel in channels for dataset in channel.windows}
        for channel in channels:
            windows = self._windows(channel, heads)
            if all(w.is_empty for w in windows.values()):
                ticks.append(Tick(channel, has_more=False))
            else:
                ready.append((channel, windows))
        return ticks + self._execute(ready) if ready else ticks

    def _windows(self, channel: Channel, heads: Mapping[str, int]) -> dict[str, Window]:
        """What the next execution reads: the started one's bounds if there is one, else up to the heads.

        The heads are read once for all channels, so that those in step have equal windows and share a scan.
        """
        if channel.started is not None:
            return {self._name(d): Window(*bounds) for d, bounds in channel.started.bounds.items()}
        return {
            dataset: Window(after, min(heads[dataset], after + self._max_window_records))
            for dataset, after in channel.windows.items()
        }

    def has_new(self, channel: Channel) -> bool:
        return any(self._stores[dataset].head > after for dataset, after in channel.windows.items())

    def waiting_since(self, channel: Channel) -> float | None:
        """When the oldest record that the channel has not seen became durable."""
        behind = [(self._stores[d], after) for d, after in channel.windows.items() if self._stores[d].head > after]
        return min((at for at in (store.time_of(after + 1) for store, after in behind) if at), default=None)

    def _execute(self, ready: Sequence[_Ready]) -> list[Tick]:
        began = self._clock.monotonic()
        now = self._clock.now()
        begun = self._begin(ready, now)
        try:
            _agree_on_subscriptions(ready, begun)
            outcomes = self._outcomes(ready, now)
        finally:
            for channel, _ in ready:
                channel.subscriptions.release()
            started = [self._started(channel, windows, b) for (channel, windows), b in zip(ready, begun, strict=True)]
        duration = self._clock.monotonic() - began
        ticks = [
            self._end(channel, windows, start if isinstance(start, ExecutionFailed) else outcome, duration)
            for (channel, windows), start, outcome in zip(ready, started, outcomes, strict=True)
        ]
        return self._commit(started, ticks)

    def _outcomes(self, ready: Sequence[_Ready], now: float) -> list[Outcome | ExecutionFailed]:
        """One job for the channels that somebody subscribed to; the others only move their windows."""
        runs = [self._prepared(channel, windows, now) for channel, windows in ready]
        wanted = [run for run in runs if isinstance(run, Run)]
        evaluate = self._engine.run_index if ready[0][0].strategy == "index" else self._engine.run_join
        found = iter(evaluate(wanted) if wanted else [])
        return [next(found) if isinstance(run, Run) else run for run in runs]

    def _prepared(self, channel: Channel, windows: Mapping[str, Window], now: float) -> Run | Outcome | ExecutionFailed:
        """What to evaluate; a channel whose subscriptions cannot be laid out fails alone."""
        if channel.subscriptions.backends == 0:
            return NOTHING
        try:
            return self._jobs.run([channel.spec.name], lambda: self._run(channel, windows, now))
        except JobEnded as problem:
            return failure(channel.spec.name, problem, channel.spec.query)
        except Exception as problem:
            log.exception("the subscriptions of %s could not be laid out", channel.spec.name)
            return _failed(channel, problem)

    def _begin(self, ready: Sequence[_Ready], now: float) -> list[Future[Execution]]:
        wanted = [(channel.id, self._bounds(windows)) for channel, windows in ready]
        return self._ledger.submit_all([partial(executions.begin, channel_id=c, bounds=b, now=now) for c, b in wanted])

    def _started(
        self, channel: Channel, windows: Mapping[str, Window], begun: Future[Execution]
    ) -> Execution | ExecutionFailed:
        """What was evaluated must be what the ledger took up; anything else would be seen twice or never."""
        try:
            execution = begun.result()
            channel.started = execution  # whatever happens next, the next attempt has these bounds
            if dict(execution.bounds) != self._bounds(windows):
                raise executions.StaleExecution(f"channel {channel.spec.name}: another execution was begun")
            return execution
        except Exception as problem:
            return self._refused(channel, problem)

    def _refused(self, channel: Channel, problem: Exception) -> ExecutionFailed:
        """The ledger did not take it; where it and memory have parted, memory follows."""
        with suppress(TocsinError):  # dropped meanwhile, or the ledger cannot be read either
            channel.restore(self._ledger.read(lambda tx: stored_progress(tx, channel.id, self._stores)))
        return _failed(channel, problem)

    def _bounds(self, windows: Mapping[str, Window]) -> dict[int, tuple[int, int]]:
        return {self._stores[dataset].id: (w.after, w.through) for dataset, w in windows.items()}

    def _run(self, channel: Channel, windows: Mapping[str, Window], now: float) -> Run:
        attempt = channel.started.attempt + 1 if channel.started else 1
        stem = self.results_directory(channel.id) / f"{channel.head + 1:012x}-{attempt}"
        held = channel.subscriptions.acquire()
        window_time = channel.started.window_time if channel.started else now
        return Run(channel.prepared, windows, window_time, held.ref, held.removed, stem)

    def results_directory(self, channel_id: int) -> Path:
        """Where a channel's files go; made when the first is written."""
        return self._results_root / str(channel_id)

    def _end(
        self, channel: Channel, windows: Mapping[str, Window], outcome: Outcome | ExecutionFailed, duration: float
    ) -> Tick:
        try:
            if isinstance(outcome, Outcome) and any(file.content is None for file in outcome.files):
                sync_directory(self.results_directory(channel.id))
        except OSError as problem:
            outcome = _failed(channel, problem)
        if isinstance(outcome, ExecutionFailed):
            return Tick(channel, has_more=True, problem=outcome, duration_s=duration, windows=windows)
        return Tick(channel, self._has_more(windows), outcome, None, duration, windows)

    def _has_more(self, windows: Mapping[str, Window]) -> bool:
        return any(self._stores[d].head > w.through for d, w in windows.items())

    def _commit(self, started: Sequence[Execution | ExecutionFailed], ticks: Sequence[Tick]) -> list[Tick]:
        """Each execution in a work of its own: one that the ledger refuses takes no other with it."""
        begun = {
            number: start
            for number, (start, tick) in enumerate(zip(started, ticks, strict=True))
            if isinstance(start, Execution) and not tick.is_stopped
        }
        written = self._ledger.submit_all([self._written(start, ticks[number]) for number, start in begun.items()])
        ended = list(ticks)
        for (number, start), future in zip(begun.items(), written, strict=True):
            ended[number] = self._committed(ticks[number], start, future)
        return ended

    def _written(self, execution: Execution, tick: Tick) -> Callable[[Tx], None]:
        return self._commit_one(execution, tick) if tick.outcome else self._fail_one(execution, tick)

    def _committed(self, tick: Tick, execution: Execution, written: Future[None]) -> Tick:
        try:
            written.result()
        except Exception as problem:
            refused = self._refused(tick.channel, problem)
            return replace(tick, has_more=True, outcome=None, problem=tick.problem or refused)
        if tick.outcome is not None:
            tick.channel.advanced(execution, {d: w.through for d, w in (tick.windows or {}).items()})
        return tick

    def _commit_one(self, execution: Execution, tick: Tick) -> Callable[[Tx], None]:
        outcome, channel = tick.outcome, tick.channel
        assert outcome is not None
        stats = ExecutionStats(tick.considered, outcome.pairs, outcome.rows, tick.duration_s, channel.strategy)
        bodies = notice_bodies(
            channel.spec.name, execution.no, outcome.backends, outcome.pairs, channel.subscriptions.attachments,
            is_push=channel.spec.push,
        )  # fmt: skip
        notices = [Notice(broker, json.dumps(body).encode()) for broker, body in bodies.items()]
        now = self._clock.now()
        return lambda tx: executions.commit(tx, execution, outcome.files, stats, notices, now, self._max_waiting)

    def _fail_one(self, execution: Execution, tick: Tick) -> Callable[[Tx], None]:
        problem = tick.problem
        assert problem is not None
        return lambda tx: executions.record_failure(tx, execution, problem.problem, problem.sql, self._clock.now())

    def _name(self, dataset_id: int) -> str:
        return next(name for name, store in self._stores.items() if store.id == dataset_id)


def _agree_on_subscriptions(ready: Sequence[_Ready], begun: Sequence[Future[Execution]]) -> None:
    """Return when memory has what the ledger added before the executions began."""
    wait([begin for (channel, _), begin in zip(ready, begun, strict=True) if channel.subscriptions.coming])


def _failed(channel: Channel, problem: Exception) -> ExecutionFailed:
    return ExecutionFailed(channel.spec.name, f"{type(problem).__name__}: {problem}", channel.spec.query)
