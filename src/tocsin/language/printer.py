"""Statements into canonical text: ``parse_statement(to_sql(s)) == s``, and no ``;`` at the end.

Keywords are upper case, clauses stand in one order, a query stays as it was written.
"""

from __future__ import annotations

from functools import singledispatch

from tocsin.language import statements as st
from tocsin.language.pieces import (
    column_sql,
    joined,
    listed_sql,
    literal_sql,
    name_sql,
    names_sql,
    parameter_sql,
    retain_sql,
    retention_sql,
    string_sql,
    values_sql,
)
from tocsin.language.units import format_duration
from tocsin.model.catalog import FeedSpec

__all__ = ["retention_sql", "to_sql"]

_IF_EXISTS = "IF EXISTS"
_IF_NOT_EXISTS = "IF NOT EXISTS"


@singledispatch
def to_sql(statement: st.Statement) -> str:
    raise TypeError(f"{type(statement).__name__} is not a statement")


@to_sql.register
def _(s: st.CreateDataset) -> str:
    spec = s.spec
    return joined(
        joined("CREATE", spec.active and "ACTIVE", "DATASET", s.if_not_exists and _IF_NOT_EXISTS, name_sql(spec.name)),
        listed_sql(map(column_sql, spec.columns)),
        spec.is_keyed and f"PRIMARY KEY {names_sql(spec.primary_key)}",
        retain_sql(spec.retain),
    )


@to_sql.register
def _(s: st.AlterDatasetAddColumn) -> str:
    return joined(
        "ALTER DATASET", name_sql(s.name), "ADD COLUMN", s.if_not_exists and _IF_NOT_EXISTS, column_sql(s.column)
    )


@to_sql.register
def _(s: st.AlterDatasetDropColumn) -> str:
    return joined("ALTER DATASET", name_sql(s.name), "DROP COLUMN", s.if_exists and _IF_EXISTS, name_sql(s.column))


@to_sql.register
def _(s: st.LoadDataset) -> str:
    return joined("LOAD DATASET", name_sql(s.name), "FROM", string_sql(s.path), "FORMAT", s.format)


@to_sql.register
def _(s: st.InsertRecords) -> str:
    rows = ", ".join(map(values_sql, s.rows))
    return joined("INSERT INTO", name_sql(s.name), bool(s.columns) and names_sql(s.columns), "VALUES", rows)


@to_sql.register
def _(s: st.DeleteRecords) -> str:
    return joined("DELETE FROM", name_sql(s.name), "WHERE", _keys_sql(s))


def _keys_sql(s: st.DeleteRecords) -> str:
    if len(s.keys) == 1:
        return " AND ".join(f"{name_sql(c)} = {literal_sql(v)}" for c, v in s.where[0])
    if len(s.columns) == 1:
        return f"{name_sql(s.columns[0])} IN {values_sql(v for (v,) in s.keys)}"
    return f"{names_sql(s.columns)} IN {listed_sql(map(values_sql, s.keys))}"


@to_sql.register
def _(s: st.CreateFeed) -> str:
    start = joined("CREATE FEED", s.if_not_exists and _IF_NOT_EXISTS, name_sql(s.spec.name))
    return joined(start, "INTO", name_sql(s.spec.dataset), "FROM", *_source_sql(s.spec))


def _source_sql(spec: FeedSpec) -> tuple[str, str]:
    """The source with its own options, and the WITH clause with the others."""
    given = dict(spec.options)
    source = [spec.kind.upper()]
    if spec.kind == "directory":
        source += [string_sql(given.pop("path")), "FORMAT", given.pop("format", "json")]
    elif spec.kind == "kafka":
        source += ["TOPIC", string_sql(given.pop("topic")), "AT", string_sql(given.pop("servers"))]
    pairs = listed_sql(f"{string_sql(k)} = {string_sql(v)}" for k, v in given.items())
    return joined(*source), f"WITH {pairs}" if given else ""


@to_sql.register
def _(s: st.CreateChannel) -> str:
    spec = s.spec
    return joined(
        joined("CREATE", s.or_replace and "OR REPLACE", spec.continuous and "CONTINUOUS", spec.push and "PUSH"),
        joined("CHANNEL", s.if_not_exists and _IF_NOT_EXISTS),
        name_sql(spec.name) + listed_sql(map(parameter_sql, spec.parameters)),
        spec.period_s is not None and f"PERIOD {string_sql(format_duration(spec.period_s))}",
        retain_sql(spec.retain),
        "AS",
        spec.query,
    )


@to_sql.register
def _(s: st.CreateBroker) -> str:
    named = joined(s.if_not_exists and _IF_NOT_EXISTS, name_sql(s.spec.name))
    return joined("CREATE", s.or_replace and "OR REPLACE", "BROKER", named, "AT", string_sql(s.spec.url))


@to_sql.register
def _(s: st.DropDataset) -> str:
    return joined("DROP DATASET", s.if_exists and _IF_EXISTS, name_sql(s.name))


@to_sql.register
def _(s: st.DropFeed) -> str:
    return joined("DROP FEED", s.if_exists and _IF_EXISTS, name_sql(s.name))


@to_sql.register
def _(s: st.DropChannel) -> str:
    return joined("DROP CHANNEL", s.if_exists and _IF_EXISTS, name_sql(s.name), s.cascade and "CASCADE")


@to_sql.register
def _(s: st.DropBroker) -> str:
    return joined("DROP BROKER", s.if_exists and _IF_EXISTS, name_sql(s.name))


@to_sql.register
def _(s: st.PauseFeed) -> str:
    return joined("PAUSE FEED", name_sql(s.name))


@to_sql.register
def _(s: st.ResumeFeed) -> str:
    return joined("RESUME FEED", name_sql(s.name))


@to_sql.register
def _(s: st.PauseChannel) -> str:
    return joined("PAUSE CHANNEL", name_sql(s.name))


@to_sql.register
def _(s: st.ResumeChannel) -> str:
    return joined("RESUME CHANNEL", name_sql(s.name))


@to_sql.register
def _(s: st.ExplainChannel) -> str:
    return joined("EXPLAIN CHANNEL", name_sql(s.name))


@to_sql.register
def _(s: st.Subscribe) -> str:
    args = (f"{name_sql(n)} => {literal_sql(v)}" if n else literal_sql(v) for n, v in s.args)
    return joined("SUBSCRIBE TO", name_sql(s.channel) + listed_sql(args), "ON", name_sql(s.broker))


@to_sql.register
def _(s: st.Unsubscribe) -> str:
    start = joined("UNSUBSCRIBE", s.if_exists and _IF_EXISTS, string_sql(s.subscription))
    return joined(start, bool(s.channel) and f"FROM {name_sql(s.channel or '')}")


@to_sql.register
def _(s: st.ChangeSubscription) -> str:
    return joined("CHANGE SUBSCRIPTION", string_sql(s.subscription), "TO", name_sql(s.broker))


@to_sql.register
def _(s: st.Show) -> str:
    return joined("SHOW", s.what.value, s.name is not None and f"OF {name_sql(s.name or '')}")


@to_sql.register
def _(s: st.Describe) -> str:
    return joined("DESCRIBE", s.kind is not None and (s.kind or "").upper(), name_sql(s.name))


@to_sql.register
def _(s: st.Select) -> str:
    return s.query
