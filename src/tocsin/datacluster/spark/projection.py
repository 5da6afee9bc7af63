"""Columns resolved once and computed for many small windows.

Spark spends most of a small query on understanding it: for the columns of twenty channels, 42 ms of the
85 that selecting and collecting them took were analysis and 20 optimisation, at one record (both on a
busy machine). What is asked is the same at every tick, only the records change. So the columns are
resolved and optimised once, over a relation without records, and a tick puts its records under them and
has Spark's own rule for local relations compute them in the driver. A column that the rule leaves alone
stays a query, which Spark runs as a job.

A resolved expression has buffers of its own, so one tick at a time uses it. The compiler admits no
function of chance and writes the window's time as a literal, so nothing resolved gets old; whoever has
such a literal asks with ``is_lasting=False``, for it will never be asked again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sql

_KEPT = 256  # projections
_LOCAL_BYTES = 8_000_000  # Spark holds no relation of more than 48 MB locally


@dataclass(frozen=True, slots=True)
class Computed:
    """A column by what it computes: ``text``, or NULL where ``condition`` does not hold."""

    name: str
    text: str
    condition: str | None = None

    def column(self) -> Column:
        value = sql.expr(self.text)
        return (sql.when(sql.expr(self.condition), value) if self.condition else value).alias(self.name)


@dataclass(frozen=True, slots=True)
class _Resolved:
    """Spark's column list, and the attributes of the relation that it is over."""

    columns: Any
    attributes: Any
    lock: threading.Lock = field(default_factory=threading.Lock)


class Projections:
    """Computes columns of small tables. May be used from any thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[pa.Schema, tuple[Computed, ...]], _Resolved | None] = OrderedDict()

    def rows(self, table: pa.Table, columns: Sequence[Computed], *, is_lasting: bool) -> list[Row]:
        """``columns`` of every row of ``table``."""
        frame = self._spark.createDataFrame(table)
        resolved = self._resolved(table.schema, tuple(columns)) if is_lasting else None
        if resolved is None or table.nbytes > _LOCAL_BYTES:
            return frame.select(*[c.column() for c in columns]).collect()
        return self._computed(frame, resolved)

    def _computed(self, frame: DataFrame, resolved: _Resolved) -> list[Row]:
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        local = frame._jdf.queryExecution().logical()
        relation = catalyst.plans.logical.LocalRelation(resolved.attributes, local.data(), False, local.stream())
        query = catalyst.plans.logical.Project(resolved.columns, relation)
        rule = getattr(getattr(catalyst.optimizer, "ConvertToLocalRelation$"), "MODULE$")
        with resolved.lock:
            return self._frame(rule.apply(query)).collect()

    def _frame(self, plan: Any) -> DataFrame:
        rows = self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan)
        return DataFrame(rows, self._spark)

    def _resolved(self, schema: pa.Schema, columns: tuple[Computed, ...]) -> _Resolved | None:
        key = (schema, columns)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        resolved = self._resolve(schema, columns)
        with self._lock:
            self._kept[key] = resolved
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return resolved

    def _resolve(self, schema: pa.Schema, columns: tuple[Computed, ...]) -> _Resolved | None:
        """The optimised columns; ``None`` where Spark made more of them than a projection of the relation."""
        kind = self._spark.createDataFrame(schema.empty_table()).schema
        nothing = self._spark.createDataFrame(self._spark.sparkContext.emptyRDD(), kind)
        plan = nothing.select(*[c.column() for c in columns])._jdf.queryExecution().optimizedPlan()
        if plan.getClass().getSimpleName() != "Project" or plan.child().getClass().getSimpleName() != "LogicalRDD":
            return None
        return _Resolved(plan.projectList(), plan.child().output())
