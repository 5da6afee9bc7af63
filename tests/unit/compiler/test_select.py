"""Plain SELECT statements."""

from __future__ import annotations

import pytest

from support.city_catalog import CATALOG, columns
from tocsin.compiler.plan import Relation, View
from tocsin.compiler.select import compile_select
from tocsin.errors import InvalidQuery, Span

EXTRA = {"AlertsResults": columns("position STRING,id INT")}


def test_it_reads_datasets_as_they_are_now_and_extra_relations() -> None:
    query = "SELECT r.eventType AS Kind, count(*) FROM Reports r JOIN alertsresults a ON a.id = r.id GROUP BY 1"
    found = compile_select(query, CATALOG, EXTRA)
    assert found.columns == ("Kind", "count(1)")
    assert found.relations == (Relation("tocsin_reports_now", "Reports", View.NOW),)
    assert found.extras == (("alertsresults", "tocsin_extra_alertsresults"),)
    assert found.sql == (
        "SELECT `r`.`eventtype` AS `Kind`, COUNT(*) AS `count(1)` FROM `tocsin_reports_now` AS `r` "
        "JOIN `tocsin_extra_alertsresults` AS `a` ON `a`.`id` = `r`.`id` GROUP BY `r`.`eventtype`"
    )


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("count(*)", "count(1)"),
        ("COUNT(r.id)", "count(id)"),
        ("count(DISTINCT sev)", "count(DISTINCT sev)"),
        ("max(x)", "max(x)"),
        ("sum(sev + 1)", "sum((sev + 1))"),
        ("min(x) * 2", "(min(x) * 2)"),
        ("max(upper(text))", "max(upper(text))"),
        ("max(concat(text, '`'))", "column_1"),
        ("sum(1) AS Total", "Total"),
    ],
)
def test_an_output_without_a_name_is_called_as_spark_calls_it(output: str, name: str) -> None:
    assert compile_select(f"SELECT {output} FROM Reports r", CATALOG).columns == (name,)


def test_the_second_of_equal_outputs_is_called_by_its_place() -> None:
    assert compile_select("SELECT count(*), count(*) FROM Reports", CATALOG).columns == ("count(1)", "column_2")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        pytest.param("SELECT id FROM Reports WHERE sev = :k", "no parameter", id="a parameter"),
        pytest.param("SELECT id FROM Reports r WHERE is_new(r)", "no meaning", id="is_new"),
        pytest.param("DELETE FROM Reports", "DELETE", id="a change"),
        pytest.param("SELECT positon FROM AlertsResults", "did you mean 'position'", id="a misspelt column"),
    ],
)
def test_refused(query: str, says: str) -> None:
    with pytest.raises(InvalidQuery, match=says):
        compile_select(query, CATALOG, EXTRA)


def test_an_outer_reference_in_order_by_gets_a_name() -> None:
    query = "SELECT n.id FROM Reports r, LATERAL (SELECT q.id FROM Reports q ORDER BY abs(q.x - r.x) LIMIT 1) n"
    assert (
        "AS `__key0` FROM `tocsin_reports_now` AS `q` ORDER BY `__key0` LIMIT 1" in compile_select(query, CATALOG).sql
    )


def test_places_count_from_where_the_query_began() -> None:
    with pytest.raises(InvalidQuery) as refusal:
        compile_select("SELECT nix FROM Reports", CATALOG, query_start=Span(4, 3))
    assert refusal.value.span == Span(4, 10)
