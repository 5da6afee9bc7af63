"""When an index answers, with which predicates, and what is said when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from support.city_catalog import compiled
from tocsin.compiler.channel import CompileOptions
from tocsin.compiler.plan import IndexPlan
from tocsin.matching.spec import Compare, Equal, HasWord, Member, Metric, Near, Op
from tocsin.model.types import SqlType

PARAMS = "t STRING, k INT, b BIGINT, d DOUBLE, x DOUBLE, y DOUBLE, l STRING[], w TIMESTAMP"


def index(query: str) -> IndexPlan:
    found = compiled(query, PARAMS).index
    assert found is not None
    return found


def where(condition: str) -> str:
    return f"SELECT r.id FROM Reports r WHERE {condition}"


@pytest.mark.parametrize(
    "condition",
    [
        "r.eventtype = :t",
        "r.eventtype IN (:l)",
        "r.sev >= :k",
        "has_word(r.text, :t)",
        "distance(r.x, r.y, :x, :y) < :d",
    ],
)
def test_conditions_are_told_by_the_columns_of_the_query(condition: str) -> None:
    joined = f"SELECT r.id, s.name FROM Reports r JOIN Shelters s ON r.x = s.x WHERE {condition}"
    assert index(where(condition)).conditions == index(joined).conditions == (condition,)


@pytest.mark.parametrize(
    ("condition", "predicates"),
    [
        pytest.param("r.eventType = :t", [Equal("__k0", "t")], id="equality"),
        pytest.param(":t = r.eventType", [Equal("__k0", "t")], id="equality turned round"),
        pytest.param("r.eventType IN (:l)", [Member("__k0", "l")], id="a list"),
        pytest.param("array_contains(:l, r.eventType)", [Member("__k0", "l")], id="a list, said otherwise"),
        pytest.param("r.sev >= :k", [Compare("__k0", Op.GE, "k")], id="a comparison"),
        pytest.param(":k > r.sev", [Compare("__k0", Op.LT, "k")], id="a comparison turned round"),
        pytest.param(
            "r.sev BETWEEN :k AND :b", [Compare("__k0", Op.GE, "k"), Compare("__k1", Op.LE, "b")], id="between"
        ),
        pytest.param(
            ":k BETWEEN r.sev AND r.id", [Compare("__k0", Op.LE, "k"), Compare("__k1", Op.GE, "k")], id="amid"
        ),
        pytest.param("r.at < :w", [Compare("__k0", Op.LT, "w")], id="times"),
        pytest.param("has_word(r.text, :t)", [HasWord("__k0", "t")], id="a keyword"),
        pytest.param(
            "distance(r.x, r.y, :x, :y) < :d",
            [Near(Metric.PLANAR, "__k0", "__k1", "x", "y", False, radius_param="d")],
            id="a distance",
        ),
        pytest.param(
            "400 >= distance_m(:x, :y, r.lat, r.lon)",
            [Near(Metric.SPHERE, "__k0", "__k1", "x", "y", True, radius_const=400.0)],
            id="a great circle of fixed size",
        ),
        pytest.param(
            "distance(r.x, r.y, :x, :y) <= r.sev",
            [Near(Metric.PLANAR, "__k0", "__k1", "x", "y", True, radius_probe="__k2")],
            id="the record's own radius",
        ),
        pytest.param("r.sev > 3", [], id="no parameter at all"),
        pytest.param("lower(r.eventType) = :t", [Equal("__k0", "t")], id="an expression of the record"),
    ],
)
def test_predicates(condition: str, predicates: list[Any]) -> None:
    assert list(index(where(condition)).spec.predicates) == predicates


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        pytest.param("SELECT :t AS t FROM Reports", "outside of simple conditions", id="a parameter in SELECT"),
        pytest.param(where("r.eventType = :t OR r.sev = :k"), "not one that an index answers", id="OR"),
        pytest.param(where("r.eventType <> :t"), "not one that an index answers", id="inequality"),
        pytest.param(where("r.sev + :k > 3"), "part of an expression", id="a parameter in an expression"),
        pytest.param(where("r.text = :k"), "across types", id="a text and a number"),
        pytest.param(where("r.eventType < :t"), "orders numbers and times", id="an order of texts"),
        pytest.param(where("r.sev > :k AND r.x > :k"), "different types", id="one parameter, two types"),
        pytest.param("SELECT count(*) AS n FROM Reports WHERE sev > :k", "groups", id="an aggregate"),
        pytest.param("SELECT id FROM Reports WHERE sev > :k LIMIT 3", "LIMIT", id="a limit"),
        pytest.param("SELECT id, rank() OVER (ORDER BY x) AS n FROM Reports WHERE sev > :k", "window", id="a window"),
        pytest.param("SELECT id FROM Reports WHERE sev > :k UNION SELECT id FROM Reports", "combines", id="a set"),
        pytest.param(
            "SELECT r.id FROM Reports r, Users u WHERE (is_new(r) OR is_new(u)) AND u.user = :t",
            "two",
            id="two drivers",
        ),
        pytest.param(
            "WITH c AS (SELECT * FROM Reports) SELECT id FROM c WHERE sev > :k",
            "type of",
            id="a column of a WITH query",
        ),
    ],
)
def test_the_join_answers_and_says_why(query: str, reason: str) -> None:
    channel = compiled(query, PARAMS)
    assert channel.strategy == "join"
    assert channel.why.startswith("join, because ")
    assert reason in channel.why


@pytest.mark.parametrize(
    ("condition", "probe", "kind"),
    [
        pytest.param("r.sev = :k", "`sev`", "INT", id="the same type"),
        pytest.param("r.sev = :b", "CAST(`sev` AS BIGINT)", "BIGINT", id="the record is widened"),
        pytest.param("r.sev < :d", "CAST(`sev` AS DOUBLE)", "DOUBLE", id="whole numbers against fractions"),
        pytest.param("r.x < :k", "`x`", "DOUBLE", id="the parameter is widened"),
    ],
)
def test_values_are_compared_in_the_type_that_spark_would_take(condition: str, probe: str, kind: str) -> None:
    plan = index(where(condition))
    assert plan.probes == (("__k0", probe),)
    assert [t for _, t in plan.spec.probe_types] == [SqlType(kind)]
    assert [t for _, t in plan.spec.param_types] == [SqlType(kind)]


def test_a_simple_plan_is_told_in_parts() -> None:
    plan = index("SELECT r.id AS Number, upper(r.text) AS t FROM Reports r WHERE r.eventType = :t AND r.sev > 3")
    assert plan.is_simple
    assert (plan.relation, plan.filter_sql) == ("tocsin_reports_new", "`sev` > 3")
    assert plan.outputs == (("Number", "`id`"), ("t", "UPPER(`text`)"))
    assert plan.sql == (
        "SELECT `r`.`__seq` AS `__seq`, 0 AS `__ord`, `r`.`eventtype` AS `__k0`, `r`.`id` AS `Number`, "
        "UPPER(`r`.`text`) AS `t` FROM `tocsin_reports_new` AS `r` WHERE `r`.`sev` > 3"
    )


def test_enrichment_is_done_once_a_record() -> None:
    plan = index(
        "SELECT r.id, s.name FROM Reports r JOIN Shelters s ON distance(r.x, r.y, s.x, s.y) < 500 "
        "WHERE r.eventType = :t"
    )
    assert not plan.is_simple
    assert "PARTITION BY `__seq` ORDER BY" in plan.sql
    assert "tocsin_shelters_now" in plan.sql
    assert "subs" not in plan.sql


def test_an_outer_reference_in_order_by_gets_a_name() -> None:
    plan = index(
        "SELECT r.id, n.name FROM Reports r, LATERAL (SELECT s.name FROM Shelters s ORDER BY abs(s.x - r.x) LIMIT 1) n "
        "WHERE r.eventType = :t"
    )
    assert "AS `__key0` FROM `tocsin_shelters_now` AS `s` ORDER BY `__key0` LIMIT 1" in plan.sql


def test_the_index_can_be_switched_off() -> None:
    channel = compiled(where("r.sev > :k"), PARAMS, CompileOptions(index=False))
    assert channel.index is None
    assert channel.why == "join, because the index is switched off"
