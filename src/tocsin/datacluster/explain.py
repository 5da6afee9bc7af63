"""What EXPLAIN CHANNEL says: the strategy and why, the SQL, how much is shared, what the last executions did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.datacluster.channel import Channel
from tocsin.datacluster.storage.executions import ExecutionRow
from tocsin.units import counted


def explanation(channel: Channel, recent: Sequence[ExecutionRow], lag_s: float, coalesced: int) -> dict[str, Any]:
    """The facts, as one JSON object."""
    plan = channel.prepared.plan
    subscribers = channel.subscriptions
    return {
        "channel": channel.spec.name,
        "strategy": plan.strategy,
        "why": plan.why,
        "fell_back": plan.join.is_lateral and plan.index is None,
        "drivers": list(plan.drivers),
        "datasets": sorted(plan.datasets),
        "seen": dict(channel.windows),
        "subscriptions": subscribers.subscriptions,
        "distinct_parameter_sets": subscribers.backends,
        "sql": plan.index.sql if plan.index else plan.join.sql,
        "join_sql": plan.join.sql,
        "predicates": list(plan.index.conditions) if plan.index else [],
        "shares_scan": bool(plan.index and plan.index.is_simple),
        "lag_s": round(lag_s, 3),
        "coalesced_ticks": coalesced,
        "problem": channel.problem,
        "executions": [_execution(row) for row in recent],
    }


def _execution(row: ExecutionRow) -> dict[str, Any]:
    return {
        "no": row.execution.no,
        "state": row.state,
        "attempt": row.execution.attempt,
        "considered": row.stats.considered,
        "matched": row.stats.matched,
        "rows": row.stats.rows,
        "milliseconds": round(row.stats.duration_s * 1000, 1),
        "problem": row.problem,
    }


def explain_lines(facts: Mapping[str, Any], spark_plan: str | None = None) -> list[str]:
    """The same for people, with Spark's own plan where there is one."""
    shared = facts["distinct_parameter_sets"]
    lines = [
        f"channel {facts['channel']}: {facts['why']}",
        f"driven by {', '.join(facts['drivers'])}; reads {', '.join(facts['datasets'])}",
        f"{counted(facts['subscriptions'], 'subscription')} with {counted(shared, 'distinct parameter set')}",
        "falls back to a LATERAL query per parameter set, still one plan" if facts["fell_back"] else "one shared plan",
    ]
    lines += [f"  index: {p}" for p in facts["predicates"]]
    if facts["problem"]:
        lines.append(f"failing: {facts['problem']}")
    if facts["lag_s"]:
        lines.append(f"lag {facts['lag_s']} s")
    lines += ["", "SQL:", facts["sql"], ""]
    lines += ["Spark's plan:", spark_plan.rstrip(), ""] if spark_plan else []
    for e in facts["executions"]:
        outcome = e["problem"] or f"{e['matched']:,} matched in {counted(e['considered'], 'new record')}"
        lines.append(
            f"execution {e['no']} {e['state']}: {outcome}, {counted(e['rows'], 'row')}, {e['milliseconds']} ms"
        )
    return lines
