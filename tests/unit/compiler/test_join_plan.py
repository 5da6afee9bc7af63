"""The shape of join plans: where subscriptions come in, what ranks rows, what is a grid."""

from __future__ import annotations

import pytest

from support.city_catalog import compiled
from tocsin.compiler.channel import CompileOptions
from tocsin.compiler.plan import Grid, SubscriptionShape

NEAR = "distance(r.x, r.y, :x, :y)"
PLACE = "x DOUBLE, y DOUBLE, d DOUBLE, t STRING, k INT"


def join_sql(query: str, params: str = PLACE) -> str:
    return compiled(query, params).join.sql


def test_a_parameter_is_a_column_of_the_subscriptions() -> None:
    assert join_sql("SELECT r.id FROM Reports r WHERE r.eventType = :t") == (
        "SELECT /*+ BROADCAST(`r`) */ `__s`.`__bs` AS `__bs`, `r`.`__seq` AS `__seq`, 0 AS `__ord`, `r`.`id` AS `id` "
        "FROM `tocsin_alerts_subs` AS `__s` JOIN `tocsin_reports_new` AS `r` ON `r`.`eventtype` = `__s`.`p_t`"
    )


def test_outputs_are_spelled_as_declared_or_as_written() -> None:
    channel = compiled("SELECT *, sev + 1 AS Worse, sev * 2 FROM Reports")
    assert channel.columns == ("id", "eventType", "x", "y", "lat", "lon", "sev", "text", "at", "Worse", "column_3")


@pytest.mark.parametrize(
    ("query", "is_ranked"),
    [
        pytest.param("SELECT id FROM Reports WHERE sev > :k", False, id="a record is one row"),
        pytest.param(
            "SELECT r.id FROM Reports r JOIN Shelters s ON s.name = r.text", False, id="a join on the whole key"
        ),
        pytest.param("SELECT r.id FROM Reports r JOIN Shelters s ON s.cap = r.sev", True, id="a join that fans out"),
        pytest.param(
            "SELECT r.id FROM Reports r, Shelters s, Users u WHERE u.user = r.text AND s.name = u.user",
            False,
            id="a chain of whole keys",
        ),
        pytest.param(
            "SELECT r.id FROM Reports r, Shelters s, Users u WHERE u.user = s.name",
            True,
            id="keys that set each other and nothing else",
        ),
        pytest.param("SELECT r.id FROM Reports r LEFT SEMI JOIN Shelters s ON s.cap = r.sev", False, id="a semi join"),
        pytest.param("SELECT count(*) AS n FROM Reports WHERE sev > :k", False, id="one aggregate row"),
        pytest.param("SELECT sev, count(*) AS n FROM Reports GROUP BY sev", True, id="groups"),
        pytest.param("SELECT DISTINCT sev FROM Reports", True, id="DISTINCT"),
        pytest.param("SELECT id FROM Reports UNION SELECT sev FROM Reports", True, id="a set operation"),
        pytest.param(
            "SELECT r.id, n.c FROM Reports r, LATERAL (SELECT count(*) AS c FROM Shelters s WHERE s.x > r.x) n",
            False,
            id="a lateral aggregate",
        ),
    ],
)
def test_a_window_is_spent_only_where_rows_share_a_record(query: str, is_ranked: bool) -> None:
    sql = join_sql(query)
    assert ("ROW_NUMBER()" in sql) == is_ranked
    assert "AS `__ord`" in sql


@pytest.mark.parametrize(
    ("query", "fragment"),
    [
        pytest.param(
            "SELECT id FROM Reports WHERE sev > :k ORDER BY sev DESC LIMIT 2",
            "PARTITION BY `__bs` ORDER BY `__by0` DESC, `id`",
            id="LIMIT numbers the rows of a subscription, ties broken by the outputs",
        ),
        pytest.param(
            "SELECT id FROM Reports WHERE sev > :k LIMIT 2",
            "PARTITION BY `__bs` ORDER BY `id`) AS `__row`",
            id="LIMIT without ORDER BY goes by the outputs",
        ),
        pytest.param(
            "SELECT id FROM Reports ORDER BY sev LIMIT :k", "`__row` <= `__limit`", id="LIMIT may be a parameter"
        ),
        pytest.param(
            "SELECT id FROM Reports WHERE sev > :k LIMIT 2 OFFSET 3",
            "`__row` > 3 AND `__row` <= 2 + 3",
            id="OFFSET skips rows of a subscription",
        ),
        pytest.param(
            "SELECT sev, count(*) AS n, :t AS t FROM Reports GROUP BY sev",
            "GROUP BY `__s`.`__bs`, `__s`.`p_t`, `reports`.`sev`",
            id="shown parameters are grouped by",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY sev ORDER BY x) AS n FROM Reports WHERE sev > :k",
            "PARTITION BY `__s`.`__bs`, `reports`.`sev`",
            id="windows are of one subscription",
        ),
        pytest.param(
            "WITH c AS (SELECT id, sev FROM Reports WHERE sev > :k) SELECT c.id, s.name FROM c JOIN Shelters s "
            "ON s.cap = c.sev AND s.name > :t",
            "`c`.`__bs` = `__s2`.`__bs`",
            id="a WITH query joins on the subscription",
        ),
        pytest.param(
            "WITH c AS (SELECT max(cap) AS m FROM Shelters) SELECT id FROM Reports, c WHERE sev > c.m AND x > :x",
            "WITH `c` AS (SELECT MAX(`shelters`.`cap`) AS `m` FROM `tocsin_shelters_now` AS `shelters`)",
            id="a WITH query without parameters stays",
        ),
        pytest.param(
            "SELECT r.id FROM Reports r LEFT JOIN Shelters s ON s.cap > :k",
            "LEFT JOIN `tocsin_shelters_now` AS `s` ON `s`.`cap` > `__s`.`p_k`",
            id="parameters in the ON of a LEFT join",
        ),
        pytest.param(
            "SELECT r.id FROM Reports r, LATERAL (SELECT s.name FROM Shelters s ORDER BY abs(s.x - r.x) LIMIT 1) n",
            "AS `__key0` FROM `tocsin_shelters_now` AS `s` ORDER BY `__key0`",
            id="an outer reference in ORDER BY gets a name",
        ),
    ],
)
def test_rewrites(query: str, fragment: str) -> None:
    assert fragment in join_sql(query)


def test_a_nested_aggregate_has_a_row_for_every_subscription() -> None:
    channel = compiled("SELECT r.id, c.n FROM Reports r, (SELECT count(*) AS n FROM Shelters WHERE cap > :k) c", PLACE)
    assert channel.join.is_lateral
    assert "CROSS JOIN LATERAL (SELECT COUNT(*) AS `n`" in channel.join.sql


@pytest.mark.parametrize(
    ("where", "grid"),
    [
        pytest.param(
            f"r.eventType = :t AND {NEAR} < :d",
            Grid(False, "x", "y", "d", None, ("t",), 500.0),
            id="radius a parameter, equality in the key",
        ),
        pytest.param(f"{NEAR} <= 800", Grid(False, "x", "y", None, 800.0, (), 500.0), id="radius a number"),
        pytest.param(
            ":d > distance(:x, :y, r.x, r.y) AND :t = r.eventType AND r.sev = :k",
            Grid(False, "x", "y", "d", None, ("k", "t"), 500.0),
            id="all turned round",
        ),
        pytest.param(
            "distance_m(r.lat, r.lon, :x, :y) < :d", Grid(True, "x", "y", "d", None, (), 500.0), id="on the sphere"
        ),
        pytest.param(f"{NEAR} < r.sev", None, id="radius of the record: flat"),
        pytest.param("distance(r.x, r.y, :x + 1, :y) < :d", None, id="a place that is not bare: flat"),
        pytest.param(f"({NEAR} < :d OR r.sev > 3)", None, id="not a condition by itself: flat"),
    ],
)
def test_grid(where: str, grid: Grid | None) -> None:
    channel = compiled(f"SELECT r.id FROM Reports r WHERE {where}", PLACE)
    assert channel.join.grid == grid
    assert channel.join.shape is (SubscriptionShape.GRID if grid else SubscriptionShape.FLAT)
    assert channel.join.subscriptions == ("tocsin_alerts_grid" if grid else "tocsin_alerts_subs")


def test_a_fixed_radius_probes_one_level_and_a_free_one_probes_all() -> None:
    fixed = join_sql(f"SELECT r.id FROM Reports r WHERE {NEAR} < 1600")
    free = join_sql(f"SELECT r.id FROM Reports r WHERE {NEAR} < :d")
    assert "`__level` = 2" in fixed
    assert "STRUCT(7 AS" in free
    assert "STRUCT(8 AS" not in free


def test_parameters_that_are_radii_are_named() -> None:
    channel = compiled(f"SELECT r.id FROM Reports r WHERE {NEAR} < :d AND r.sev > :k", PLACE)
    assert channel.radius_params == ("d",)


def test_parameters_keep_their_declared_spelling() -> None:
    query = "SELECT r.id FROM Reports r WHERE r.eventType = :KIND AND distance(r.x, r.y, :px, :PY) < :reach"
    channel = compiled(query, "Kind STRING, pX DOUBLE, pY DOUBLE, Reach DOUBLE")
    assert channel.join.grid == Grid(False, "pX", "pY", "Reach", None, ("Kind",), 500.0)
    assert channel.radius_params == ("Reach",)
    assert channel.index is not None
    assert [name for name, _ in channel.index.spec.param_types] == ["Kind", "pX", "pY", "Reach"]


def test_the_cell_is_a_setting() -> None:
    options = CompileOptions(cell=100.0, max_radius=150.0)
    channel = compiled(f"SELECT r.id FROM Reports r WHERE {NEAR} < :d", PLACE, options)
    assert channel.join.grid == Grid(False, "x", "y", "d", None, (), 100.0)
    assert "STRUCT(1 AS" not in channel.join.sql


def test_the_clock_is_a_hole_in_the_text_and_strings_are_not() -> None:
    sql = join_sql("SELECT now() AS n, current_date() AS d, 'a {now} b {now}' AS s FROM Reports")
    assert sql.count("{now}") == 2
    assert "CONCAT('a {', 'now} b {', 'now}')" in sql


def test_text_is_printed_never_pasted() -> None:
    sql = join_sql("SELECT 'it\\'s /* no */ -- comment' AS s FROM Reports /* gone */ WHERE text = 'x\\\\' -- gone")
    assert "gone" not in sql
    assert r"'it\'s /* no */ -- comment'" in sql
    assert r"'x\\'" in sql


@pytest.mark.parametrize(
    ("written", "grouped"),
    [
        pytest.param("sev, x WITH ROLLUP", "ROLLUP (`r`.`sev`, `r`.`x`)", id="a rollup after its keys"),
        pytest.param("sev, x WITH CUBE", "CUBE (`r`.`sev`, `r`.`x`)", id="a cube after its keys"),
        pytest.param("sev, x GROUPING SETS ((sev), ())", "GROUPING SETS ((`r`.`sev`), ())", id="sets after their keys"),
        pytest.param("ROLLUP (sev, x)", "ROLLUP (`r`.`sev`, `r`.`x`)", id="a rollup of its keys"),
        pytest.param("sev, CUBE (x)", "`r`.`sev`, CUBE (`r`.`x`)", id="a key beside a cube"),
        pytest.param("ALL", "`r`.`sev`, `r`.`x`", id="all"),
    ],
)
def test_totals_are_of_one_subscription(written: str, grouped: str) -> None:
    sql = join_sql(f"SELECT sev, x, count(*) AS n FROM Reports r WHERE eventType = :t GROUP BY {written}")
    assert f"GROUP BY `__s`.`__bs`, {grouped})" in sql


def test_a_negative_radius_of_a_record_covers_no_more_than_zero() -> None:
    sql = join_sql("SELECT r.id FROM Reports r, Shelters s WHERE distance(r.x, r.y, s.x, s.y) < r.sev AND r.id = :k")
    assert "GREATEST(LEAST(CAST(`r`.`sev` AS DOUBLE), CAST(50000.0 AS DOUBLE)), CAST(0.0 AS DOUBLE)) AS `__c1r`" in sql


@pytest.mark.parametrize(
    ("radius", "is_indexed"),
    [
        pytest.param("100", True, id="a number"),
        pytest.param("100L", True, id="an integer of another size"),
        pytest.param("0.5D", True, id="a DOUBLE"),
        pytest.param("CAST(5.7 AS INT)", False, id="a cast that changes the number"),
    ],
)
def test_a_written_radius_is_what_spark_compares_with(radius: str, is_indexed: bool) -> None:
    assert (compiled(f"SELECT r.id FROM Reports r WHERE {NEAR} < {radius}", PLACE).index is not None) is is_indexed
