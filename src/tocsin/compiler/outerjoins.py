# ruff: noqa: S608 - the texts built here are parsed into trees; nothing of a user is in them unprinted
"""RIGHT and FULL joins with parameters below them: every side is there once for each subscription.

``A FULL JOIN B ON c(:p)`` keeps the rows of both sides that have no partner, for each subscription its own.
So both are crossed with the subscriptions and joined on ``__bs`` besides c. This multiplies whole
datasets and is meant for small ones. (A LATERAL query around the join would be the obvious other
way; Spark 4.2.1 accepts it and loses the rows without a partner.)
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tocsin.compiler.keyed import Keying
from tocsin.compiler.plan import PARAMETER, SUBSCRIPTION
from tocsin.compiler.spread import merged_name, wrap
from tocsin.compiler.trees import add_where, column, conjuncts, equal, joins_of, sources_of


def key_every_source(select: exp.Select, keying: Keying, keyed_aliases: Sequence[str]) -> str:
    """Key each source of FROM, join them on ``__bs``; an alias that has it and the parameters."""
    for node in sources_of(select):
        if isinstance(node, exp.Lateral):
            raise keying.source.invalid("LATERAL beside a RIGHT or FULL join is not possible", node, "LEFT joins")
    seen = [select.args["from_"].this.alias_or_name]
    _key_source(select, seen[0], keying, keyed_aliases)
    for join in joins_of(select):
        alias = join.this.alias_or_name
        _key_source(select, alias, keying, keyed_aliases)
        _read_parameters(join, alias)
        same = equal(column(alias, SUBSCRIPTION), _any_of(seen))
        join.set("on", exp.and_(*conjuncts(join.args.get("on")), same))
        join.set("kind", join.kind if join.kind in ("SEMI", "ANTI") else None)
        if join.kind not in ("SEMI", "ANTI"):
            seen.append(alias)
    subs = keying.alias()
    select.append("joins", exp.Join(this=keying.table(subs), kind="CROSS"))
    add_where(select, equal(column(subs, SUBSCRIPTION), _any_of(seen)))
    return subs


def _key_source(select: exp.Select, alias: str, keying: Keying, keyed_aliases: Sequence[str]) -> None:
    """Give a source ``__bs`` and the parameters; one that is keyed already gets the parameters only."""
    subs = keying.alias()
    given = [f"`{subs}`.`{PARAMETER}{p}` AS `{merged_name(PARAMETER + p)}`" for p in keying.parameters]
    if alias in keyed_aliases:
        met = f"JOIN {keying.relation} AS {subs} ON {subs}.{SUBSCRIPTION} = `{alias}`.{SUBSCRIPTION}"
    else:
        given.append(f"{subs}.{SUBSCRIPTION} AS {SUBSCRIPTION}")
        met = f"CROSS JOIN {keying.relation} AS {subs}"
    wrap(select, alias, f"SELECT {', '.join([f'`{alias}`.*', *given])} FROM __hole {met}")


def _read_parameters(join: exp.Join, alias: str) -> None:
    """In ON the joined side is always there, so its copy of the parameters is."""
    if (on := join.args.get("on")) is not None:
        holder = exp.Paren(this=on)
        for marker in list(holder.find_all(exp.Placeholder)):
            marker.replace(column(alias, merged_name(PARAMETER + marker.name)))
        join.set("on", holder.this)


def _any_of(aliases: Sequence[str]) -> exp.Expr:
    columns = [column(alias, SUBSCRIPTION) for alias in aliases]
    return columns[0] if len(columns) == 1 else exp.func("COALESCE", *columns)
