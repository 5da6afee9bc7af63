"""One pass over one window of a dataset for many channels.

Spark evaluates, once per record, every channel's condition, payload and the columns that its index is
probed with; what several channels compute is computed once. The matching then runs in Spark's Python
workers, or, for a small window, right here in the driver. A Python stage costs Spark about 25 ms before
its first row (measured: 37 ms for an empty one, where a trivial query takes 15 ms), which is more than
matching a few hundred records takes; the code that matches is the same in both places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from tocsin.compiler.plan import SEQUENCE
from tocsin.datacluster.spark.prepared import bound_sql, timestamp_sql
from tocsin.datacluster.spark.projection import Computed, Projections
from tocsin.datacluster.spark.worker import SUMMARY_SQL, Probe, match_partition, summaries
from tocsin.model.arrow import arrow_type
from tocsin.model.types import SqlType

if TYPE_CHECKING:
    from tocsin.datacluster.spark.engine import Run

MakeProbe = Callable[[int, "Run", tuple[tuple[str, str], ...], str, str | None], Probe]
_TEXT, _NUMBER = SqlType("STRING"), SqlType("BIGINT")


class SharedScan:
    """The columns that the members need, and the probes that use them."""

    def __init__(self, members: Sequence[tuple[int, Run]], probe: MakeProbe) -> None:
        self._columns = _Columns()
        self._has_time = any(_has_time(run) for _, run in members)
        self._probes = tuple(self._probe_of(number, run, probe) for number, run in members)

    def match_in_workers(self, records: DataFrame) -> DataFrame:
        """Summaries, one a channel and partition."""
        candidates = records.select(SEQUENCE, *self._columns.chosen())
        return candidates.mapInArrow(partial(match_partition, self._probes), SUMMARY_SQL)

    def match_here(self, records: pa.Table, projections: Projections) -> list[dict[str, Any]]:
        """The same, matched in this process."""
        wanted = [Computed(SEQUENCE, SEQUENCE), *self._columns.portable()]
        rows = projections.rows(records, wanted, is_lasting=not self._has_time)
        values = zip(*rows, strict=True) if rows else [()] * (1 + len(self._columns.types))
        types = [_NUMBER, *self._columns.types]
        arrays = [_array(column, kind) for column, kind in zip(values, types, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, names=[SEQUENCE, *self._columns.names])
        return summaries(self._probes, [batch])

    def _probe_of(self, number: int, run: Run, probe: MakeProbe) -> Probe:
        plan = run.channel.plan.index
        assert plan is not None
        now = timestamp_sql(run.window_time)
        payload = self._columns.payload(
            bound_sql(run.channel.index_payload or "", now),
            bound_sql(plan.filter_sql, now) if plan.filter_sql else None,
        )
        types = dict(plan.spec.probe_types)
        names = tuple((name, self._columns.probe(bound_sql(text, now), types[name])) for name, text in plan.probes)
        return probe(number, run, names, payload, None)


class _Columns:
    """The columns of a scan by what they compute, a probe or a payload; the same is one column."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str | None, SqlType], str] = {}

    def probe(self, text: str, kind: SqlType) -> str:
        return self._name(text, None, kind)

    def payload(self, text: str, condition: str | None) -> str:
        return self._name(text, condition, _TEXT)

    @property
    def names(self) -> list[str]:
        return list(self._names.values())

    @property
    def types(self) -> list[SqlType]:
        return [kind for _, _, kind in self._names]

    def chosen(self) -> list[Column]:
        return [Computed(name, text, condition).column() for (text, condition, _), name in self._names.items()]

    def portable(self) -> list[Computed]:
        """The columns in forms that rows carry exactly: an instant as microseconds, not as local time."""
        return [
            Computed(name, f"unix_micros({text})" if _is_instant(kind) else text, condition)
            for (text, condition, kind), name in self._names.items()
        ]

    def _name(self, text: str, condition: str | None, kind: SqlType) -> str:
        return self._names.setdefault((text, condition, kind), f"c{len(self._names)}")


def _has_time(run: Run) -> bool:
    """Whether a channel's columns hold the window's time."""
    plan = run.channel.plan.index
    assert plan is not None
    texts = [run.channel.index_payload or "", plan.filter_sql or "", *(text for _, text in plan.probes)]
    return any(bound_sql(text, "") != text for text in texts)


def _is_instant(kind: SqlType) -> bool:
    return kind.name == "TIMESTAMP" and not kind.is_array


def _array(values: Sequence[Any], kind: SqlType) -> pa.Array:
    if _is_instant(kind):
        return pa.array(values, pa.int64()).cast(arrow_type(kind))
    if kind == _TEXT:  # payloads are most of it, and go into a result file as they are
        return pa.array(values, pa.large_string())
    return pa.array(values, arrow_type(kind))
