"""A deliberately dumb evaluator of index specifications, and random worlds to compare with.

The evaluator follows Spark's comparisons: NULL makes a predicate false, NaN equals NaN and is above
every number, -0.0 equals 0.0. On the sphere, pairs within 1e-9 of the radius may fall either way.
"""

from __future__ import annotations

import math
import operator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tocsin.matching.grid import EARTH_RADIUS_M
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Metric, Near, Op, Predicate
from tocsin.matching.words import words
from tocsin.model.types import SqlType

ARROW = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
}
UNSURE = object()


def arrow_type(sql: SqlType) -> pa.DataType:
    scalar = pa.decimal128(sql.precision, sql.scale) if sql.name == "DECIMAL" else ARROW[sql.name]
    return pa.list_(scalar) if sql.is_array else scalar


# -- the dumb evaluator ---------------------------------------------------------------------------


def ordering(value: Any) -> Any:
    """Something that sorts as Spark sorts."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return (0, value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


def meet(left: Any, right: Any) -> tuple[Any, Any]:
    """Any number beside a double becomes one."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    return ordering(left), ordering(right)


def compare(left: Any, op: Op, right: Any) -> bool:
    a, b = meet(left, right)
    return {Op.LT: a < b, Op.LE: a <= b, Op.GT: a > b, Op.GE: a >= b}[op]


def planar(x1: float, y1: float, x2: float, y2: float) -> float:
    with np.errstate(all="ignore"):
        dx, dy = np.float64(x1) - np.float64(x2), np.float64(y1) - np.float64(y2)
        return float(np.sqrt(dx * dx + dy * dy))


def sphere(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    if not all(map(math.isfinite, (lat1, lon1, lat2, lon2))):
        return math.pi * EARTH_RADIUS_M  # least(1, NaN) is 1
    p1, q1, p2, q2 = map(math.radians, (lat1, lon1, lat2, lon2))
    a = math.sin((p2 - p1) / 2) ** 2 + math.cos(p1) * math.cos(p2) * math.sin((q2 - q1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, a)))


def near(p: Near, record: dict[str, Any], params: dict[str, Any]) -> Any:
    radius = p.radius_const
    radius = params[p.radius_param] if p.radius_param else radius
    radius = record[p.radius_probe] if p.radius_probe else radius
    places = (record[p.x_probe], record[p.y_probe], params[p.x_param], params[p.y_param])
    if radius is None or None in places:
        return False
    distance = (sphere if p.metric is Metric.SPHERE else planar)(*map(float, places))
    if p.metric is Metric.SPHERE and abs(distance - radius) <= 1e-9 * max(distance, 1.0):
        return UNSURE
    return compare(distance, Op.LE if p.inclusive else Op.LT, float(radius))


def holds(p: Predicate, record: dict[str, Any], params: dict[str, Any]) -> Any:
    if isinstance(p, Near):
        return near(p, record, params)
    left, right = record[p.probe], params[p.param]
    if left is None or right is None:
        return False
    if isinstance(p, Equal):
        return operator.eq(*meet(left, right))
    if isinstance(p, Member):
        return any(operator.eq(*meet(left, e)) for e in right if e is not None)
    if isinstance(p, HasWord):
        return right.lower() in words(left)
    return compare(left, p.op, right)


def expected(spec: IndexSpec, record: dict[str, Any], params: list[dict[str, Any]]) -> tuple[set[int], set[int]]:
    """(the places that match, those that may)."""
    sure, unsure = set(), set()
    for i, values in enumerate(params):
        answers = [holds(p, record, values) for p in spec.predicates]
        if all(answers):
            (unsure if UNSURE in answers else sure).add(i)
    return sure, unsure


# -- random worlds --------------------------------------------------------------------------------

DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 1e300, 5e-324]),
    st.floats(-10, 10),
    st.floats(allow_nan=True),
)
VALUES = {
    "BOOLEAN": st.booleans(),
    "INT": st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": DOUBLES,
    "STRING": st.sampled_from(["", "a", "A", "fire", "feu", "é", "a-b", "longer than eight bytes"])
    | st.text(max_size=4),
    "TIMESTAMP": st.sampled_from([datetime(2026, 1, d, h, tzinfo=UTC) for d in (1, 2) for h in (0, 5)]),
    "DATE": st.sampled_from([date(2026, 1, 1), date(2026, 1, 2), date(1960, 2, 29)]),
}
TEXTS = st.lists(
    st.sampled_from(["Fire", "fire", "FLOOD", "é", "É", "İ", "ΟΔΟΣ", "x1", "-", "_", "a_b", "²", "ß"]), max_size=4
).map(" ".join)
WORDS = st.sampled_from(["fire", "Flood", "É", "i", "οδος", "οδοσ", "x1", "a", "a_b", "", " ", "fire ", "²", "ß"])
COORDINATES = st.one_of(
    st.integers(-4, 4).map(float), st.floats(-20, 20), st.sampled_from([math.nan, math.inf, 1e18, 1e-9])
)
RADII = st.one_of(
    st.integers(0, 6).map(float), st.floats(0, 60), st.sampled_from([-1.0, 0.0, -0.0, math.nan, math.inf, 1e4, 1e301])
)
LATITUDES = st.floats(-90, 90) | st.sampled_from([90.0, -90.0, 0.0, 89.9999, math.nan])
LONGITUDES = st.floats(-180, 180) | st.sampled_from([180.0, -180.0, 179.9999, -179.9999, 0.0, 540.0])
METRES = st.one_of(
    st.floats(0, 3e5), st.floats(0, 2.1e7), st.sampled_from([0.0, -1.0, 1.0, 111195.0, 2.0015e7, math.nan, math.inf])
)
PAIRED_TYPES = [
    ("INT", "INT"), ("INT", "BIGINT"), ("BIGINT", "INT"), ("DOUBLE", "DOUBLE"), ("TIMESTAMP", "TIMESTAMP"),
    ("DATE", "DATE"), ("DATE", "TIMESTAMP"), ("DECIMAL", "DECIMAL"), ("DECIMAL", "INT"), ("INT", "DECIMAL"),
    ("INT", "DOUBLE"), ("DOUBLE", "BIGINT"), ("DECIMAL", "DOUBLE"),
]  # fmt: skip


@st.composite
def sql_type(draw: st.DrawFn, name: str) -> SqlType:
    if name != "DECIMAL":
        return SqlType(name)
    scale = draw(st.integers(0, 3))
    return SqlType("DECIMAL", draw(st.sampled_from([10, 18, 30])), scale)


def values_of(sql: SqlType) -> st.SearchStrategy[Any]:
    if sql.name == "DECIMAL":
        most = "9" * (sql.precision - sql.scale)  # as text: arithmetic rounds to 28 digits
        return st.integers(-2, 2).map(Decimal) | st.decimals(f"-{most}", most, places=sql.scale)
    return VALUES[sql.name]


class World:
    """Predicates with the strategies of the columns that they read."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []
        self.probes: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {}
        self.params: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {}

    def probe(self, sql: SqlType, values: st.SearchStrategy[Any]) -> str:
        return self._add(self.probes, "c", sql, values)

    def param(self, sql: SqlType, values: st.SearchStrategy[Any]) -> str:
        return self._add(self.params, "p", sql, values)

    @staticmethod
    def _add(side: dict[str, Any], prefix: str, sql: SqlType, values: st.SearchStrategy[Any]) -> str:
        name = f"{prefix}{len(side)}"
        side[name] = (sql, values)
        return name

    def spec(self, cell: float) -> IndexSpec:
        probes = tuple((name, sql) for name, (sql, _) in self.probes.items())
        params = tuple((name, sql) for name, (sql, _) in self.params.items())
        return IndexSpec(tuple(self.predicates), probes, params, cell)


def two_sides(draw: st.DrawFn, choices: list[tuple[str, str]]) -> list[tuple[SqlType, st.SearchStrategy[Any]]]:
    """Two types with values that often meet: drawn from a few, the same for both where the types are."""
    left, right = draw(st.sampled_from(choices))
    a, b = draw(sql_type(left)), draw(sql_type(right))
    few_a = draw(st.lists(values_of(a), min_size=1, max_size=3))
    few_b = few_a if a == b else draw(st.lists(values_of(b), min_size=1, max_size=3))
    return [(a, often(few_a, values_of(a))), (b, often(few_b, values_of(b)))]


def often(few: list[Any], others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(few), st.sampled_from(few), others)


def add_equal(draw: st.DrawFn, world: World) -> None:
    a, b = two_sides(draw, [*PAIRED_TYPES, ("STRING", "STRING"), ("BOOLEAN", "BOOLEAN")])
    world.predicates.append(Equal(world.probe(*a), world.param(*b)))


def add_member(draw: st.DrawFn, world: World) -> None:
    a, (b, values) = two_sides(draw, [*PAIRED_TYPES, ("STRING", "STRING")])
    array = SqlType(b.name, b.precision, b.scale, is_array=True)
    elements = st.lists(mostly(values), max_size=5)
    world.predicates.append(Member(world.probe(*a), world.param(array, elements)))


def add_compare(draw: st.DrawFn, world: World) -> None:
    a, b = two_sides(draw, PAIRED_TYPES)
    world.predicates.append(Compare(world.probe(*a), draw(st.sampled_from(list(Op))), world.param(*b)))


def add_word(draw: st.DrawFn, world: World) -> None:
    text = SqlType("STRING")
    world.predicates.append(HasWord(world.probe(text, TEXTS), world.param(text, WORDS)))


def add_near(draw: st.DrawFn, world: World) -> None:
    double = SqlType("DOUBLE")
    metric, kind = draw(st.sampled_from(list(Metric))), draw(st.sampled_from(["param", "probe", "const"]))
    xs, ys, radii = (COORDINATES, COORDINATES, RADII) if metric is Metric.PLANAR else (LATITUDES, LONGITUDES, METRES)
    places = [world.probe(double, xs), world.probe(double, ys), world.param(double, xs), world.param(double, ys)]
    radius = {
        "param": lambda: {"radius_param": world.param(double, radii)},
        "probe": lambda: {"radius_probe": world.probe(double, radii)},
        "const": lambda: {"radius_const": draw(radii)},
    }[kind]()
    world.predicates.append(Near(metric, *places, inclusive=draw(st.booleans()), **radius))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[IndexSpec, list[dict[str, Any]], list[dict[str, Any]]]:
    world = World()
    for add in draw(st.lists(st.sampled_from([add_equal, add_member, add_compare, add_word, add_near]), max_size=3)):
        add(draw, world)
    spec = world.spec(draw(st.sampled_from([1.0, 500.0, 20000.0])))
    params = draw(st.lists(rows_of(world.params), max_size=12))
    return spec, params, draw(st.lists(rows_of(world.probes), max_size=6))


def rows_of(side: dict[str, tuple[SqlType, st.SearchStrategy[Any]]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({n: mostly(values) for n, (_, values) in side.items()})


def mostly(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Seldom NULL."""
    return st.integers(0, 9).flatmap(lambda k: values if k else st.none())


def arrow_columns(types: tuple[tuple[str, SqlType], ...], rows: list[dict[str, Any]]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in rows], arrow_type(sql)) for name, sql in types}


def record_table(spec: IndexSpec, records: list[dict[str, Any]]) -> pa.Table:
    columns = arrow_columns(spec.probe_types, records)
    return pa.table({**columns, "__seq": pa.array(range(len(records)), pa.int64())})


def found_by_row(matches: Any) -> list[list[int]]:
    return [matches.ids[a:b].tolist() for a, b in zip(matches.offsets[:-1], matches.offsets[1:], strict=True)]
