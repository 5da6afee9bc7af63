"""Runs executions on Spark: all channels of a tick in as few jobs as their strategies allow.

``index`` channels that only filter and project one dataset share a single scan (``scan.py``); those that
join other datasets are branches of one job. ``join`` channels are the arms of one UNION ALL. When a
joint job fails, its channels are run one by one, so that the culprit fails alone.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tocsin.compiler.plan import ORDINAL, SEQUENCE, SUBSCRIPTION
from tocsin.datacluster.spark.factorise import Factorised, factorise
from tocsin.datacluster.spark.jobs import JobEnded, Jobs, OverLimit, Stopped
from tocsin.datacluster.spark.prepared import PreparedChannel, bound_sql, timestamp_sql
from tocsin.datacluster.spark.projection import Projections
from tocsin.datacluster.spark.reasons import reason
from tocsin.datacluster.spark.relations import Binding, Relations, Window, arrow_frame
from tocsin.datacluster.spark.scan import SharedScan
from tocsin.datacluster.spark.worker import SUMMARY_SQL, Probe, match_partition, warm_up
from tocsin.datacluster.storage.dataset import DatasetStore
from tocsin.datacluster.storage.executions import ResultFile
from tocsin.datacluster.storage.resultfiles import result_batch, result_bytes, write_result_file
from tocsin.errors import ExecutionFailed, ExecutionStopped, ExecutionTooLong
from tocsin.matching import warming
from tocsin.matching.refs import IndexRef

log = logging.getLogger(__name__)

Ids = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of one channel: what to evaluate and where its results go.

    ``removed`` are backend numbers to leave out of a join's results; ``path_stem`` is ``None`` where
    pairs are only counted.
    """

    channel: PreparedChannel
    windows: Mapping[str, Window]
    window_time: float
    index: IndexRef
    removed: Ids | None
    path_stem: Path | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave; ``backends`` lists who got something, ``None`` where they are too many to list."""

    files: tuple[ResultFile, ...]
    rows: int
    pairs: int
    backends: Ids | None


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """``list_pairs``: backends that an outcome lists at most; ``inline_bytes``: results that need no file;
    ``driver_records``: windows whose candidates are matched in the driver."""

    list_pairs: int = 1000
    inline_bytes: int = 64_000
    driver_records: int = 500


NOTHING = Outcome((), 0, 0, np.empty(0, np.uint32))


class Engine:
    def __init__(
        self,
        spark: SparkSession,
        stores: Mapping[str, DatasetStore],
        jobs: Jobs,
        options: EngineOptions,
    ) -> None:
        self._spark, self._stores, self._jobs = spark, stores, jobs
        self._list_pairs, self._inline_bytes = options.list_pairs, options.inline_bytes
        self._driver_records = options.driver_records
        self._relations = Relations(spark)
        self._joined: dict[str, tuple[PreparedChannel, str]] = {}  # the SQL of each channel's last join
        self._projections = Projections(spark)

    @property
    def relations(self) -> Relations:
        return self._relations

    def warm_up(self) -> None:
        """Fork the Python workers and compile the kernels before the first tick needs them."""
        warming.warm_up()
        cores = self._spark.sparkContext.defaultParallelism
        self._spark.range(cores, numPartitions=cores).mapInArrow(warm_up, SUMMARY_SQL).collect()

    def run_index(self, runs: Sequence[Run]) -> list[Outcome | ExecutionFailed]:
        """Evaluate channels with the index strategy in one job."""
        return self._jointly(runs, self._index_job, lambda run: run.channel.plan.index.sql)  # type: ignore[union-attr]

    def run_join(self, runs: Sequence[Run]) -> list[Outcome | ExecutionFailed]:
        """Evaluate channels with the join strategy in one job."""
        return self._jointly(runs, self._join_job, lambda run: run.channel.plan.join.sql)

    def _jointly(
        self, runs: Sequence[Run], job: Callable[[Sequence[Run]], list[Outcome]], sql_of: Callable[[Run], str]
    ) -> list[Outcome | ExecutionFailed]:
        try:
            return list(self._jobs.run([run.channel.spec.name for run in runs], lambda: job(runs)))
        except Exception as problem:
            if not isinstance(problem, PySparkException | Py4JError | OSError | pa.ArrowException | JobEnded):
                log.exception("a job failed outside Spark")
            if len(runs) == 1:
                return [failure(runs[0].channel.spec.name, problem, sql_of(runs[0]))]
            log.warning("a joint job of %d channels failed, running them one by one: %s", len(runs), reason(problem))
            return [outcome for run in runs for outcome in self._jointly([run], job, sql_of)]

    # --- index ---------------------------------------------------------------------------------

    def _index_job(self, runs: Sequence[Run]) -> list[Outcome]:
        scans: dict[tuple[str, Window], list[tuple[int, Run]]] = {}
        frames: list[DataFrame] = []
        for number, run in enumerate(runs):
            assert run.channel.plan.index is not None
            if run.channel.plan.index.is_simple:
                dataset = run.channel.plan.drivers[0].lower()
                scans.setdefault((dataset, run.windows[dataset]), []).append((number, run))
            else:
                frames.append(self._branch(number, run))
        summaries: list[Mapping[str, Any]] = []
        for (dataset, window), members in scans.items():
            scan = SharedScan(members, self._probe)
            records = self._stores[dataset].new(window.after, window.through)
            if window.through - window.after <= self._driver_records:
                summaries += scan.match_here(records, self._projections)
            else:
                frames.append(scan.match_in_workers(arrow_frame(self._spark, records)))
        if frames:
            summaries += [row.asDict() for row in reduce(DataFrame.unionAll, frames).collect()]
        return [self._outcome([s for s in summaries if s["channel"] == n]) for n in range(len(runs))]

    def _branch(self, number: int, run: Run) -> DataFrame:
        """A channel whose candidates need a query of their own."""
        plan = run.channel.plan.index
        assert plan is not None
        with self._relations.binding() as binding:
            frame = self._spark.sql(self._bound(binding, run, plan.sql))
        ordinal = ORDINAL if ORDINAL in frame.columns else None
        names = [name for name, _ in plan.spec.probe_types]
        kept = [SEQUENCE, *([ORDINAL] if ordinal else []), *[f"`{name}`" for name in names]]
        candidates = frame.selectExpr(*kept, f"{run.channel.index_payload} AS payload")
        probe = self._probe(number, run, tuple((name, name) for name in names), "payload", ordinal)
        return candidates.mapInArrow(partial(match_partition, (probe,)), SUMMARY_SQL)

    def _outcome(self, summaries: Sequence[Mapping[str, Any]]) -> Outcome:
        """One channel's summaries, a partition each, put together."""
        files = tuple(
            ResultFile(s["path"], s["rows"], s["pairs"], s["size"], bytes(s["content"]) if s["content"] else None)
            for s in summaries
            if s["path"]
        )
        pairs = sum(s["pairs"] for s in summaries)
        rows = sum(s["rows"] for s in summaries)
        lists = [np.frombuffer(s["backends"], np.uint32) for s in summaries if s["backends"] is not None]
        is_listed = len(lists) == len(summaries) and pairs <= self._list_pairs
        backends = np.concatenate([*lists, np.empty(0, np.uint32)]) if is_listed else None
        return Outcome(files, rows, pairs, backends)

    def _probe(
        self, number: int, run: Run, probes: tuple[tuple[str, str], ...], payload: str, ordinal: str | None
    ) -> Probe:
        stem = str(run.path_stem) if run.path_stem else None
        return Probe(number, run.index, probes, payload, ordinal, stem, self._list_pairs, self._inline_bytes)

    # --- join ----------------------------------------------------------------------------------

    def _join_job(self, runs: Sequence[Run]) -> list[Outcome]:
        with self._relations.binding() as binding:
            arms = [self._arm_sql(binding, number, run) for number, run in enumerate(runs)]
            frame = self._spark.sql("\nUNION ALL\n".join(arms))
        rows = frame.toArrow()
        numbers = rows.column("channel").to_numpy()
        return [self._store(run, rows.filter(pa.array(numbers == n))) for n, run in enumerate(runs)]

    def count_join(self, runs: Sequence[Run]) -> list[Outcome]:
        """How many pairs the join strategy finds, without fetching them."""
        return [self._counted(run) for run in runs]

    def _counted(self, run: Run) -> Outcome:
        gone = f" WHERE {SUBSCRIPTION} NOT IN ({', '.join(map(str, run.removed))})" if run.removed is not None else ""
        with self._relations.binding() as binding:
            joined = self._bound(binding, run, run.channel.plan.join.sql)
            frame = self._spark.sql(f"SELECT count({SUBSCRIPTION}) AS pairs FROM ({joined}){gone}")  # noqa: S608
        pairs = frame.collect()[0]["pairs"]
        return Outcome((), 0, pairs, None)

    def join_plan(self, channel: PreparedChannel) -> str | None:
        """Spark's physical plan of a channel's last join; ``None`` if there was none, or its views are gone."""
        joined, sql = self._joined.get(channel.spec.name, (None, ""))
        if joined is not channel:
            return None
        try:
            return str(self._spark.sql(sql)._jdf.queryExecution().executedPlan().toString())
        except AnalysisException:
            return None

    def forget(self, channel: str) -> None:
        """A channel was dropped."""
        self._joined.pop(channel, None)

    def _arm_sql(self, binding: Binding, number: int, run: Run) -> str:
        columns = [
            f"{number} AS channel",
            f"CAST({SUBSCRIPTION} AS INT) AS bs",
            f"CAST({SEQUENCE} AS BIGINT) AS seq",
            f"CAST({ORDINAL} AS INT) AS ord",
            f"{run.channel.join_payload} AS payload",
        ]
        sql = self._bound(binding, run, run.channel.plan.join.sql)
        self._joined[run.channel.spec.name] = (run.channel, sql)
        return f"SELECT {', '.join(columns)} FROM ({sql})"  # noqa: S608

    def _store(self, run: Run, rows: pa.Table) -> Outcome:
        if run.removed is not None and rows.num_rows:
            rows = rows.filter(pa.array(~np.isin(rows.column("bs").to_numpy(), run.removed)))
        result = factorise(rows)
        listed = result.ids if len(result.ids) <= self._list_pairs else None
        files: tuple[ResultFile, ...] = ()
        if len(result.ids) and run.path_stem is not None:
            files = (self._written(Path(f"{run.path_stem}-{uuid.uuid4().hex[:8]}.arrow"), result),)
        return Outcome(files, len(result.seq), len(result.ids), listed)

    def _written(self, path: Path, result: Factorised) -> ResultFile:
        batch = result_batch(result.seq, result.ord, result.payload, result.offsets, result.ids)
        if batch.nbytes > self._inline_bytes:
            return write_result_file(path, result.seq, result.ord, result.payload, result.offsets, result.ids)
        content = result_bytes([batch])
        return ResultFile(str(path), batch.num_rows, len(result.ids), len(content), content)

    def _bound(self, binding: Binding, run: Run, sql: str) -> str:
        sql = binding.sql(sql, run.channel.plan.relations, self._stores, run.windows)
        return bound_sql(sql, timestamp_sql(run.window_time))


def failure(channel: str, problem: Exception, sql: str) -> ExecutionFailed:
    """What to report of a channel whose evaluation ended with ``problem``."""
    kinds: dict[type[Exception], type[ExecutionFailed]] = {Stopped: ExecutionStopped, OverLimit: ExecutionTooLong}
    kind = kinds.get(type(problem), ExecutionFailed)
    return kind(channel, reason(problem), sql)
