"""Random channels over a small city, its data as Spark views, and the dumb evaluator.

The dumb evaluator puts each subscription's values as literals in place of the parameters and runs
the query by itself, one after the other. It shares the front half of the compiler (parsing, names, who
drives), and nothing of the rewriting.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from sqlglot import exp

from tocsin.compiler.drivers import attach_relations, find_drivers, hide_aliases
from tocsin.compiler.functions import expand, print_sql
from tocsin.compiler.laterals import order_by_aliases
from tocsin.compiler.names import resolve
from tocsin.compiler.parse import Source, parse_query
from tocsin.compiler.plan import CompiledChannel, SubscriptionShape
from tocsin.compiler.trees import is_global_aggregate
from tocsin.errors import Span
from tocsin.matching.grid import cover_planar, cover_sphere
from tocsin.matching.spec import Compare, Equal, HasWord, Member, Metric, Near, Predicate
from tocsin.matching.words import words
from tocsin.model.catalog import Column, DatasetSpec, Parameter
from tocsin.model.types import SqlType

NOW = "TIMESTAMP '2026-01-01 00:00:00'"
KINDS = ("fire", "flood", "quake")
TEXTS = ("Fire in the hall", "flood, water!", "it's calm", "", "FEUER–Fire", None)


def columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(name, SqlType(kind)) for name, kind in (part.split() for part in text.split(",")))


REPORTS = DatasetSpec(
    "Reports",
    columns("id INT,kind STRING,x DOUBLE,y DOUBLE,lat DOUBLE,lon DOUBLE,sev INT,text STRING,radius DOUBLE"),
    active=True,
)
USERS = DatasetSpec("Users", columns("user STRING,x DOUBLE,y DOUBLE,city STRING"), primary_key=("user",))
SHELTERS = DatasetSpec("Shelters", columns("name STRING,x DOUBLE,y DOUBLE,cap INT"), primary_key=("name",))
CATALOG = {d.name.lower(): d for d in (REPORTS, USERS, SHELTERS)}
PARAMETERS = (
    *(Parameter("t", SqlType("STRING")), Parameter("x", SqlType("DOUBLE")), Parameter("y", SqlType("DOUBLE"))),
    *(Parameter("r", SqlType("DOUBLE")), Parameter("l", SqlType("STRING", is_array=True))),
    *(Parameter("k", SqlType("INT")), Parameter("u", SqlType("STRING"))),
)

# Conditions on a report {r}; those of PLAIN an index answers as well.
PLAIN = (
    "{r}.kind = :t",
    ":t = {r}.kind",
    "{r}.kind IN (:l)",
    "{r}.sev >= :k",
    ":k > {r}.sev",
    "{r}.sev BETWEEN :k AND 4",
    "{r}.x < :x",
    "{r}.sev < :r",
    "has_word({r}.text, :t)",
    "distance({r}.x, {r}.y, :x, :y) < :r",
    "700 >= distance(:x, :y, {r}.x, {r}.y)",
    "distance({r}.x, {r}.y, :x, :y) <= {r}.radius",
    "distance_m({r}.lat, {r}.lon, :x / 100000, :y / 100000) < 900",
    "{r}.sev IS NOT NULL",
)
OTHER = (
    "{r}.kind <> :t",
    "({r}.kind = :t OR {r}.sev > :k)",
    "NOT has_word({r}.text, :t)",
    "{r}.sev + :k > 4",
    "EXISTS (SELECT 1 FROM Shelters e WHERE e.cap = {r}.sev AND e.cap > :k)",
    "NOT EXISTS (SELECT 1 FROM Shelters e WHERE distance(e.x, e.y, {r}.x, {r}.y) < 600 AND e.cap > :k)",
    "{r}.sev IN (SELECT cap FROM Shelters WHERE cap >= :k)",
    "{r}.x > (SELECT avg(x) FROM Shelters WHERE cap >= :k)",
)
# Queries around conditions: {w} on alias r, {v} on alias q (another place where reports are read).
SHAPES = (
    "SELECT * FROM Reports r WHERE {w}",
    "SELECT r.id, r.sev AS Sev, :t AS mine FROM Reports r WHERE {w}",
    "SELECT r.id, s.name FROM Reports r JOIN Shelters s ON s.cap = r.sev WHERE {w}",
    "SELECT r.id, s.name FROM Reports r LEFT JOIN Shelters s ON s.cap = r.sev AND s.cap > :k WHERE {w}",
    "SELECT r.id, s.name FROM Reports r LEFT JOIN Shelters s ON distance(r.x, r.y, s.x, s.y) < 800 WHERE {w}",
    "SELECT r.id, s.name FROM Reports r, Shelters s WHERE distance(r.x, r.y, s.x, s.y) < 800 AND {w}",
    "SELECT r.id, s.name FROM Reports r, Shelters s WHERE distance(s.x, s.y, r.x, r.y) <= :r AND {w}",
    "SELECT r.id, u.city FROM Reports r, Users u WHERE u.user = :u AND distance(r.x, r.y, u.x, u.y) < :r AND {w}",
    "SELECT r.id, q.id AS other FROM Reports r JOIN Reports q ON distance(r.x, r.y, q.x, q.y) < r.radius WHERE {w}",
    "SELECT r.kind, count(*) AS n, max(r.sev) AS m FROM Reports r WHERE {w} GROUP BY r.kind HAVING count(*) > :k - 2",
    "SELECT r.kind, sum(CASE WHEN r.sev > :k THEN 1 ELSE 0 END) AS n, :t AS t FROM Reports r WHERE {w} GROUP BY ALL",
    "SELECT count(*) AS n, min(r.id) AS first FROM Reports r WHERE {w}",
    "SELECT DISTINCT r.kind, r.sev FROM Reports r WHERE {w}",
    "SELECT r.id, r.sev FROM Reports r WHERE {w} ORDER BY r.sev DESC, abs(r.x - :x) LIMIT 3",
    "SELECT r.id, r.sev FROM Reports r WHERE {w} ORDER BY r.sev, r.id LIMIT :k OFFSET 1",
    "SELECT r.id, row_number() OVER (PARTITION BY r.kind ORDER BY r.sev, r.id) AS n FROM Reports r WHERE {w}",
    "SELECT r.id, r.kind FROM Reports r WHERE {w} UNION ALL SELECT q.id, q.text FROM Reports q WHERE {v}",
    "SELECT r.sev FROM Reports r WHERE {w} UNION SELECT q.sev FROM Reports q WHERE {v} ORDER BY sev LIMIT 3",
    "SELECT r.id FROM Reports r WHERE {w} EXCEPT SELECT q.id FROM Reports q WHERE {v}",
    "SELECT r.id FROM Reports r WHERE {w} INTERSECT SELECT q.id FROM Reports q WHERE {v}",
    "WITH c AS (SELECT * FROM Reports r WHERE {w}) SELECT c.id, s.name FROM c JOIN Shelters s ON s.cap >= c.sev",
    "WITH c AS (SELECT r.id, r.sev FROM Reports r WHERE {w}), d AS (SELECT q.sev, count(*) AS n FROM Reports q "
    "WHERE {v} GROUP BY q.sev) SELECT c.id, d.n FROM c LEFT JOIN d ON d.sev = c.sev",
    "SELECT z.id FROM (SELECT r.id, r.sev FROM Reports r WHERE {w} ORDER BY r.sev, r.id LIMIT 4) z WHERE z.sev > 0",
    "SELECT r.id, c.n FROM Reports r, (SELECT count(*) AS n FROM Shelters s WHERE s.cap > :k) c WHERE {w}",
    "SELECT r.id, c.n FROM Reports r, (SELECT count(*) AS n FROM Shelters s WHERE s.cap > :k HAVING count(*) < 4) c",
    "SELECT r.id, n.near FROM Reports r, LATERAL (SELECT sort_array(collect_list(d)) AS near FROM (SELECT "
    "distance(s.x, s.y, r.x, r.y) AS d FROM Shelters s ORDER BY d LIMIT 2)) n WHERE {w}",
    "SELECT r.id, s.name FROM Reports r FULL JOIN Shelters s ON s.cap = r.sev AND {w}",
    "SELECT r.id, s.name FROM Shelters s RIGHT JOIN Reports r ON s.cap = r.sev AND s.cap > :k WHERE {w}",
    "SELECT r.id, (SELECT max(s.cap) FROM Shelters s WHERE s.name > :t AND s.x > r.x) AS m FROM Reports r WHERE {w}",
)


@st.composite
def channels(draw: st.DrawFn) -> str:
    """The text of a channel."""
    shape = draw(st.sampled_from(SHAPES))
    # Below a FULL join Spark takes no subqueries, so those draw from the plain conditions.
    pool = PLAIN if "FULL" in shape else PLAIN + OTHER

    def where(alias: str) -> str:
        chosen = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True))
        return " AND ".join(condition.format(r=alias) for condition in chosen)

    return shape.format(w=where("r"), v=where("q"))


def subscriptions(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    """Distinct parameter sets, some values NULL."""
    rows = []
    for _ in range(count):
        place = rng.uniform(0, 3000), rng.uniform(0, 3000), rng.uniform(50, 2500)
        text, kinds = rng.choice([*KINDS, "calm", "s1", None]), rng.sample(KINDS, rng.randint(0, 3))
        rows.append((text, *place, kinds, rng.choice([0, 1, 2, 3, None]), f"u{rng.randint(0, 7)}"))
    return rows


def _report(rng: random.Random, number: int) -> tuple[Any, ...]:
    place = rng.uniform(0, 3000), rng.uniform(0, 3000), rng.uniform(0, 0.03), rng.uniform(0, 0.03)
    return number, rng.choice(KINDS), *place, rng.choice([0, 1, 2, 3, 4, None]), rng.choice(TEXTS), rng.uniform(0, 1500)


def _keyed(rng: random.Random, prefix: str, last: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    def row(key: str) -> tuple[Any, ...]:
        return key, rng.uniform(0, 3000), rng.uniform(0, 3000), last()

    return {f"{prefix}{i}": row(f"{prefix}{i}") for i in range(6)}, {
        f"{prefix}{i}": row(f"{prefix}{i}") for i in range(3, 9)
    }


class City:
    """Records before and after a window, from a seed."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.old_reports = [_report(rng, i) for i in range(14)]
        self.new_reports = [_report(rng, i) for i in range(14, 24)]
        self.users = _keyed(rng, "u", lambda: rng.choice("ab"))
        self.shelters = _keyed(rng, "s", lambda: rng.randint(0, 4))

    def register(self, spark: Any) -> None:
        none = (None,) * len(REPORTS.columns)
        old = [(*r, i, *r) for i, r in enumerate(self.old_reports, 1)]
        new = [(*r, i + 100, *none) for i, r in enumerate(self.new_reports, 1)]
        _register(spark, REPORTS, old, new)
        for dataset, (before, after) in ((USERS, self.users), (SHELTERS, self.shelters)):
            empty = (None,) * len(dataset.columns)
            kept = [(*row, i, *row) for i, (key, row) in enumerate(before.items()) if key not in after]
            changed = [(*row, i + 100, *before.get(key, empty)) for i, (key, row) in enumerate(after.items())]
            _register(spark, dataset, kept, changed)


def arrow_type(kind: SqlType) -> pa.DataType:
    scalar = {"INT": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "STRING": pa.string()}[kind.name]
    return pa.list_(scalar) if kind.is_array else scalar


def _view(spark: Any, name: str, fields: list[tuple[str, pa.DataType]], rows: list[tuple[Any, ...]]) -> None:
    arrays = [pa.array([row[i] for row in rows], kind) for i, (_, kind) in enumerate(fields)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    spark.createDataFrame(table).createOrReplaceTempView(name)


def _register(spark: Any, dataset: DatasetSpec, old: list[tuple[Any, ...]], new: list[tuple[Any, ...]]) -> None:
    plain = [(c.name, arrow_type(c.type)) for c in dataset.columns]
    fields = [*plain, ("__seq", pa.int64()), *((f"__before_{n}", t) for n, t in plain)]
    bare = len(plain) + 1
    for view, rows in (("new", new), ("now", old + new), ("old", old)):
        _view(spark, f"tocsin_{dataset.name.lower()}_{view}", fields[:bare], [row[:bare] for row in rows])
    for view, rows in (("new_before", new), ("now_before", old + new)):
        _view(spark, f"tocsin_{dataset.name.lower()}_{view}", fields, rows)


def register_subscriptions(spark: Any, compiled: CompiledChannel, rows: list[tuple[Any, ...]]) -> None:
    """The relation that the plan asks for, flat or as a grid."""
    fields = [(f"p_{p.name}", arrow_type(p.type)) for p in PARAMETERS]
    numbered = [(number, *row) for number, row in enumerate(rows)]
    if compiled.join.shape is SubscriptionShape.FLAT:
        _view(spark, compiled.join.subscriptions, [("__bs", pa.int64()), *fields], numbered)
        return
    grid = compiled.join.grid
    assert grid is not None
    at = {p.name: i for i, p in enumerate(PARAMETERS)}
    place = ([row[at[name]] for row in rows] for name in (grid.x_param, grid.y_param))
    radii = [row[at[grid.radius_param]] if grid.radius_param else grid.radius_const for row in rows]
    cover = cover_sphere if grid.sphere else cover_planar
    cells: dict[tuple[Any, ...], list[Any]] = {}
    for owner, *cell in zip(*(a.tolist() for a in cover(*place, radii, grid.cell)), strict=True):
        key = (*(rows[owner][at[name]] for name in grid.equal_params), *cell)
        cells.setdefault(key, []).append(dict(zip(("__bs", *(n for n, _ in fields)), numbered[owner], strict=True)))
    keys = [(f"k_{name}", arrow_type(PARAMETERS[at[name]].type)) for name in grid.equal_params]
    axes = ("__cx", "__cy", "__cz") if grid.sphere else ("__cx", "__cy")
    subs = pa.list_(pa.struct([("__bs", pa.int64()), *fields]))
    schema = [*keys, ("__level", pa.int32()), *((axis, pa.int64()) for axis in axes), ("subs", subs)]
    _view(spark, compiled.join.subscriptions, schema, [(*key, held) for key, held in cells.items()])


def _literal(value: Any, kind: SqlType) -> str:
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind.is_array:
        return f"CAST(ARRAY({', '.join(_literal(v, kind.element) for v in value)}) AS {kind})"
    return f"CAST({value!r} AS {kind})"


def dumb_sql(query: str, rows: list[tuple[Any, ...]]) -> str:
    """One query a subscription, each with the values written in, all put together."""
    parts = (f"SELECT {n} AS __bs, z.* FROM ({_one(query, row)}) z" for n, row in enumerate(rows))
    return " UNION ALL ".join(parts)


def _one(query: str, row: tuple[Any, ...]) -> str:
    source = Source(query, Span(1, 1))
    tree = parse_query(source, 100_000, 50)
    hide_aliases(source, tree)
    schema = {name: dataset.columns for name, dataset in CATALOG.items()}
    tree, _ = resolve(source, tree, schema, {p.name: p.type for p in PARAMETERS})
    find_drivers(source, tree, CATALOG)
    attach_relations(tree, CATALOG)
    values = {p.name: (v, p.type) for p, v in zip(PARAMETERS, row, strict=True)}
    for marker in list(tree.find_all(exp.Placeholder)):
        value, kind = values[marker.name]
        if isinstance(marker.parent, exp.Limit):  # LIMIT takes a plain number; no number, no rows
            marker.replace(exp.Literal.number(value or 0))
        else:
            marker.replace(exp.maybe_parse(_literal(value, kind), dialect="spark"))
    if is_global_aggregate(tree):  # nobody is told that nothing happened
        tree.having("count(*) > 0", copy=False)
    order_by_aliases(tree)
    expand(tree)
    return print_sql(tree)


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return tuple(comparable(v) for v in value) if isinstance(value, list | tuple) else value


def holds(predicate: Predicate, record: dict[str, Any], values: dict[str, Any]) -> bool:
    """A predicate of an index, said plainly."""
    if isinstance(predicate, Near):
        return _near(predicate, record, values)
    probe, value = record[predicate.probe], values[predicate.param]
    if probe is None or value is None:
        return False
    match predicate:
        case Equal():
            return bool(probe == value)
        case Member():
            return probe in value
        case HasWord():
            return value.lower() in words(probe)
        case Compare(op=op):
            return {"<": probe < value, "<=": probe <= value, ">": probe > value, ">=": probe >= value}[op]
    raise AssertionError(predicate)


def _near(near: Near, record: dict[str, Any], values: dict[str, Any]) -> bool:
    x1, y1, x2, y2 = record[near.x_probe], record[near.y_probe], values[near.x_param], values[near.y_param]
    radius = near.radius_const
    if near.radius_param or near.radius_probe:
        radius = values[near.radius_param] if near.radius_param else record[near.radius_probe]
    if None in (x1, y1, x2, y2, radius):
        return False
    assert near.metric is Metric.PLANAR
    distance = math.hypot(x1 - x2, y1 - y2)
    return distance <= radius if near.inclusive else distance < radius
