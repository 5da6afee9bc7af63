"""A channel that Spark has accepted: the compiled plan, its output types, its payload expression.

Preparing analyses the plan on empty relations, so a channel that Spark would refuse is refused when it
is created, with Spark's reason, and not at its first tick.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from tocsin.compiler.plan import (
    BEFORE,
    PARAMETER,
    SEQUENCE,
    SUBSCRIPTION,
    CompiledChannel,
    JoinPlan,
    Relation,
    SubscriptionShape,
    View,
)
from tocsin.datacluster.spark.payload import payload_sql
from tocsin.datacluster.spark.reasons import reason
from tocsin.datacluster.spark.relations import arrow_frame, rename_sql
from tocsin.datacluster.spark.subscriptions import layout
from tocsin.errors import InvalidQuery
from tocsin.model.arrow import arrow_type
from tocsin.model.catalog import ChannelSpec, DatasetSpec

_NOW_OR_NAME = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|\{now\}")
_NOW = "TIMESTAMP '1970-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class PreparedChannel:
    spec: ChannelSpec
    plan: CompiledChannel
    join_payload: str  # over the columns of ``plan.join.sql``
    index_payload: str | None  # over the relation where the index plan is simple, else over its SQL's columns
    result_types: tuple[tuple[str, str], ...] = ()  # of the channel's columns, as Spark writes them


def prepare(
    spark: SparkSession, spec: ChannelSpec, plan: CompiledChannel, datasets: Mapping[str, DatasetSpec]
) -> PreparedChannel:
    """Analyse ``plan`` on empty relations; InvalidQuery with Spark's words if it is refused."""
    prefix = f"tocsin_check_{abs(hash(spec)):x}_"
    names = {r.name: prefix + r.name for r in plan.relations} | {
        plan.join.subscriptions: prefix + plan.join.subscriptions
    }
    try:
        for relation in plan.relations:
            arrow_frame(spark, _empty(relation, datasets[relation.dataset.lower()])).createOrReplaceTempView(
                names[relation.name]
            )
        arrow_frame(spark, layout(plan.join, _no_subscriptions(spec))).createOrReplaceTempView(
            names[plan.join.subscriptions]
        )
        types = _types(spark, plan.join.sql, names)
        payload = payload_sql([(c, f"`{c}`", types[c]) for c in plan.columns])
        shown = tuple((c, _type_text(types[c])) for c in plan.columns)
        return PreparedChannel(spec, plan, payload, _index_payload(spark, plan, names), shown)
    except PySparkException as problem:
        raise InvalidQuery(f"Spark refuses the query: {reason(problem)}") from problem
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)


def unprepared(spec: ChannelSpec, drivers: Sequence[str], problem: str) -> PreparedChannel:
    """What stands for a channel that does not compile; nothing of it can be executed."""
    nothing = JoinPlan("", f"subs_{spec.name}", SubscriptionShape.FLAT, None, is_lateral=False)
    why = f"cannot be compiled: {problem}"
    plan = CompiledChannel(spec.name, (), tuple(drivers), frozenset(drivers), (), nothing, None, why)
    return PreparedChannel(spec, plan, "", None)


def bound_sql(sql: str, now: str) -> str:
    """``sql`` with the window's time in place; a column or a text of that name stays what it is."""
    if "{now}" not in sql:
        return sql
    return _NOW_OR_NAME.sub(lambda found: now if found[0] == "{now}" else found[0], sql)


def timestamp_sql(moment: float) -> str:
    """An instant as a literal."""
    return f"TIMESTAMP '{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"


def _index_payload(spark: SparkSession, plan: CompiledChannel, names: Mapping[str, str]) -> str | None:
    if plan.index is None:
        return None
    types = _types(spark, plan.index.sql, names)
    if plan.index.is_simple:
        return payload_sql([(name, f"({sql})", types[name]) for name, sql in plan.index.outputs])
    return payload_sql([(c, f"`{c}`", types[c]) for c in plan.columns])


def _types(spark: SparkSession, sql: str, names: Mapping[str, str]) -> dict[str, DataType]:
    for name, view in names.items():
        sql = rename_sql(sql, name, view)
    return {f.name: f.dataType for f in spark.sql(bound_sql(sql, _NOW)).schema.fields}


def _type_text(kind: DataType) -> str:
    """As statements write it; what is inside an array or a struct as Spark does, since names have a case."""
    text = kind.simpleString()
    return text if "<" in text else text.upper()


def _empty(relation: Relation, spec: DatasetSpec) -> pa.Table:
    fields = [pa.field(c.name, arrow_type(c.type)) for c in spec.columns]
    fields.append(pa.field(SEQUENCE, pa.int64()))
    if relation.view in (View.NEW_BEFORE, View.NOW_BEFORE):
        fields += [pa.field(BEFORE + c.name, arrow_type(c.type)) for c in spec.columns]
    return pa.schema(fields).empty_table()


def _no_subscriptions(spec: ChannelSpec) -> pa.Table:
    fields = [pa.field(SUBSCRIPTION, pa.int32())]
    fields += [pa.field(PARAMETER + p.name, arrow_type(p.type)) for p in spec.parameters]
    return pa.schema(fields).empty_table()
