"""What is refused, where the error points, and what it says was expected."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from support.city_catalog import compiled
from tocsin.compiler.channel import CompileOptions
from tocsin.compiler.functions import ANONYMOUS, check_function
from tocsin.compiler.parse import DIALECT, Source
from tocsin.errors import InvalidQuery, Span, StatementError, SyntaxProblem

PARAMS = "t STRING, k INT, x DOUBLE, y DOUBLE, l STRING[]"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        pytest.param("SELECT id FROM Reports; SELECT id FROM Reports", "2 statements", id="two statements"),
        pytest.param("DROP TABLE Reports", "DROP", id="something that is no query"),
        pytest.param("INSERT INTO Reports SELECT * FROM Reports", "INSERT", id="an insert"),
        pytest.param("SELECT id FROM Report", "did you mean 'Reports'", id="an unknown dataset"),
        pytest.param("SELECT id FROM db.Reports", "a name with a dot is not allowed", id="a qualified name"),
        pytest.param("SELECT id FROM Reports VERSION AS OF 3", "VERSION", id="time travel"),
        pytest.param("SELECT id FROM Reports TABLESAMPLE (10 PERCENT)", "SAMPLE", id="a sample"),
        pytest.param("SELECT /*+ BROADCAST(Reports) */ id FROM Reports", "a hint is not allowed", id="a hint"),
        pytest.param("SELECT r.id FROM Reports r NATURAL JOIN Users u", "a NATURAL join", id="a natural join"),
        pytest.param("SELECT id FROM Reports SORT BY x", "SORT BY", id="an order of partitions"),
        pytest.param("SELECT TRANSFORM(id) USING 'cat' FROM Reports", "TRANSFORM", id="a script"),
        pytest.param("SELECT id FROM Reports WHERE sev = ?", "positional", id="a positional parameter"),
        pytest.param(
            "SELECT id FROM Reports WHERE sev = :kk", "no parameter :kk; did you mean 'k'", id="a wrong parameter"
        ),
        pytest.param("SELECT id FROM Reports WHERE sev = @v", "PARAMETER", id="a session variable"),
        pytest.param("SELECT id FROM range(10)", "table function", id="a table function"),
        pytest.param("SELECT id FROM VALUES (1) AS v(id)", "VALUES", id="inline rows"),
        pytest.param("SELECT rand() AS r FROM Reports", "'rand' is not allowed", id="chance"),
        pytest.param("SELECT uuid() AS r FROM Reports", "'uuid' is not allowed", id="unique ids"),
        pytest.param("SELECT current_user() AS r FROM Reports", "not allowed", id="the session's user"),
        pytest.param("SELECT reflect('a', 'b') AS r FROM Reports", "'reflect' is not allowed", id="reflection"),
        pytest.param("SELECT java_method('a', 'b') AS r FROM Reports", "'java_method'", id="Java methods"),
        pytest.param("SELECT input_file_name() AS r FROM Reports", "'input_file_name'", id="file names"),
        pytest.param(
            "SELECT monotonically_increasing_id() AS r FROM Reports", "'monotonically", id="row numbers of Spark"
        ),
        pytest.param("SELECT map('a', 1) AS m FROM Reports", "not allowed", id="maps"),
        pytest.param("SELECT repeat(id, 10001) AS m FROM Reports", "repeat was given '10001'", id="a huge text"),
        pytest.param("SELECT repeat(id, sev) AS m FROM Reports", "a number up to 10,000", id="a text of any size"),
        pytest.param(
            "SELECT repeat(id, :k) AS m FROM Reports", "a number up to 10,000", id="a text of a size asked for"
        ),
        pytest.param("SELECT space(2000000000) AS m FROM Reports", "space was given", id="much space"),
        pytest.param("SELECT rpad(id, 2000000000) AS m FROM Reports", "pad was given", id="a wide text"),
        pytest.param("SELECT array_repeat(1, sev) AS m FROM Reports", "array_repeat was given", id="a huge array"),
        pytest.param("SELECT round(x, 100000000) AS m FROM Reports", "round was given '100000000'", id="many decimals"),
        pytest.param(
            "SELECT bround(x, -20000) AS m FROM Reports", "bround was given '-20000'", id="many the other way"
        ),
        pytest.param(
            "SELECT levenshtein(repeat(id, 200), repeat(text, 200)) AS m FROM Reports",
            "levenshtein may make too much here",
            id="long texts compared letter by letter",
        ),
        pytest.param("SELECT sequence(1, 10001) AS m FROM Reports", "this sequence may be long", id="a long sequence"),
        pytest.param("SELECT sequence(1, sev) AS m FROM Reports", "this sequence may be long", id="one of any length"),
        pytest.param(
            "SELECT sequence(1, 5, 0) AS m FROM Reports", "this sequence may be long", id="one without an end"
        ),
        pytest.param("SELECT repeat(repeat(id, 2000), 2000) AS m FROM Reports", "at most 1,000,000", id="nested calls"),
        pytest.param(
            "SELECT replace(replace(repeat('a', 100), 'a', repeat('a', 1000)), 'a', repeat('a', 10000)) AS m "
            "FROM Reports",
            "replace may make too much here; expected at most 1,000,000",
            id="calls beside each other",
        ),
        pytest.param(
            "SELECT regexp_replace(repeat('a', 1000), '', repeat('b', 9999)) AS m FROM Reports",
            "regexp_replace may make too much",
            id="places without width replaced",
        ),
        pytest.param(
            "SELECT regexp_replace(repeat('a', 9999), '(?=(.*))', '$1') AS m FROM Reports",
            "regexp_replace may make too much",
            id="what a pattern saw ahead",
        ),
        pytest.param(
            "SELECT array_join(array_repeat('a', 10000), repeat('b', 1000)) AS m FROM Reports",
            "array_to_string may make too much",
            id="long separators",
        ),
        pytest.param(
            "SELECT concat_ws(repeat('b', 1000), array_repeat('a', 10000)) AS m FROM Reports",
            "concat_ws may make too much",
            id="long separators of arrays",
        ),
        pytest.param(
            "WITH a AS (SELECT repeat('x', 10000) AS t FROM Reports), b AS (SELECT replace(t, 'x', t) AS u FROM a) "
            "SELECT u FROM b",
            "replace may make too much",
            id="texts made by inner queries",
        ),
        pytest.param(
            "SELECT replace(v.t, 'x', v.t) AS u FROM (SELECT id FROM Reports UNION ALL SELECT repeat('x', 10000) "
            "FROM Reports) v(t)",
            "replace may make too much",
            id="texts that got their names by place",
        ),
        pytest.param(
            f"SELECT {'hex(' * 20}id{')' * 20} AS m FROM Reports", "hex may make too much", id="doubling many times"
        ),
        pytest.param("SELECT transform(l, q -> q + 1) AS m FROM Reports", "not allowed", id="lambdas"),
        pytest.param("SELECT explode(split(text, ' ')) AS w FROM Reports", "not allowed", id="explode in SELECT"),
        pytest.param("SELECT id AS __seq FROM Reports", "'__seq' is reserved", id="a reserved output"),
        pytest.param("SELECT __seq FROM Reports", "reserved", id="a column of ours"),
        pytest.param("SELECT `a b`.id FROM Reports `a b`", "letters, digits and _", id="a strange name"),
        pytest.param("SELECT id, sev AS ID FROM Reports", "2 output columns are called 'id'", id="outputs of one name"),
        pytest.param("SELECT ide FROM Reports", "no column 'ide'; did you mean 'id'", id="an unknown column"),
        pytest.param("SELECT r.ide FROM Reports r", "no column 'ide'", id="an unknown column of an alias"),
        pytest.param("SELECT q.id FROM Reports r", "no 'q' in FROM", id="an unknown alias"),
        pytest.param("SELECT x FROM Reports r, Users u", "'x' is ambiguous", id="an ambiguous column"),
        pytest.param("SELECT distance(x, y) AS d FROM Reports", "2 arguments; expected 4", id="too few arguments"),
        pytest.param("SELECT id FROM Reports WHERE has_word(text, '')", "empty word", id="an empty word"),
        pytest.param("SELECT id FROM Reports WHERE eventType IN (:l, 'a')", "IN mixes", id="a list beside values"),
        pytest.param("SELECT id FROM Reports WHERE distance(x, y, :x, :y) < 1e9", "at most 50000", id="a huge radius"),
        pytest.param("SELECT id FROM Reports ORDER BY id LIMIT 1 + 1", "LIMIT was given", id="LIMIT of an expression"),
        pytest.param("WITH RECURSIVE c AS (SELECT id FROM Reports) SELECT id FROM c", "RECURSIVE", id="recursion"),
        pytest.param("WITH users AS (SELECT id FROM Reports) SELECT id FROM users", "taken", id="WITH over a dataset"),
        pytest.param("SELECT DISTINCT id FROM Reports ORDER BY sev", "not selected", id="DISTINCT ordered by another"),
        pytest.param("SELECT name FROM Shelters", "no dataset drives", id="nothing active"),
        pytest.param("SELECT id FROM Reports r WHERE is_new(q)", "expected one of r", id="is_new of nothing"),
        pytest.param("SELECT id FROM Reports r WHERE NOT is_new(r)", "cannot be", id="is_new in an expression"),
        pytest.param(
            "SELECT id FROM Reports UNION SELECT cap FROM Shelters", "arm of UNION", id="an arm without driver"
        ),
        pytest.param(
            "SELECT count(*) AS n FROM Reports r, Users u WHERE is_new(r) OR is_new(u)",
            "plain SELECT",
            id="two in groups",
        ),
    ],
)
def test_refused(query: str, says: str) -> None:
    with pytest.raises(StatementError) as refusal:
        compiled(query, PARAMS)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("query", "span"),
    [
        pytest.param("SELECT id\nFROM Report", Span(2, 6), id="a dataset on the second line"),
        pytest.param("SELECT ide FROM Reports", Span(1, 8), id="a column"),
        pytest.param("SELECT id FROM Reports\n WHERE sev = :nix", Span(2, 14), id="a parameter"),
        pytest.param("SELECT id,\n  rand() AS r FROM Reports", Span(2, 3), id="a function"),
    ],
)
def test_errors_point_at_the_place(query: str, span: Span) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        compiled(query)
    assert refusal.value.span == span


def test_places_count_from_where_the_query_began_in_the_script() -> None:
    options = CompileOptions(query_start=Span(10, 5))
    for query, span in (("SELECT ide FROM Reports", Span(10, 12)), ("SELECT id FROM\nReport", Span(11, 1))):
        with pytest.raises(InvalidQuery) as refusal:
            compiled(query, options=options)
        assert refusal.value.span == span


def test_a_syntax_error_names_what_it_stumbled_over() -> None:
    with pytest.raises(SyntaxProblem) as refusal:
        compiled("SELECT id\nFROM Reports WHERE (sev > 3")
    assert refusal.value.span is not None
    assert refusal.value.span.line == 2


@pytest.mark.parametrize(
    ("query", "options"),
    [
        pytest.param(f"SELECT {'(' * 60}id{')' * 60} AS a FROM Reports", CompileOptions(), id="parentheses"),
        pytest.param(f"SELECT id FROM Reports WHERE {'NOT ' * 1500}TRUE", CompileOptions(), id="a chain of NOTs"),
        pytest.param(f"SELECT '{'a' * 500}' AS a FROM Reports", CompileOptions(max_query_chars=400), id="characters"),
    ],
)
def test_length_and_depth_are_bounded(query: str, options: CompileOptions) -> None:
    with pytest.raises(InvalidQuery, match=r"deep|characters"):
        compiled(query, options=options)


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_long_list_of_conditions_is_not_deep(word: str) -> None:
    query = "SELECT id FROM Reports WHERE " + f" {word} ".join(f"sev <> {n}" for n in range(400))
    assert compiled(query).columns == ("id",)


def test_a_list_beyond_measure_is_refused() -> None:
    query = "SELECT id FROM Reports WHERE " + " OR ".join(f"x={n}" for n in range(1300))
    with pytest.raises(InvalidQuery, match="deep"):
        compiled(query)


@pytest.mark.parametrize(
    "expression",
    [
        *("abs(sev)", "round(x, 2)", "greatest(x, y)", "sqrt(x)", "pmod(sev, 3)", "sev % 2", "x / 2", "sev DIV 2"),
        *("lower(text)", "upper(text)", "trim(text)", "substring(text, 1, 3)", "concat(text, 'a')", "text || 'a'"),
        *(
            "length(text)",
            "replace(text, 'a', 'b')",
            "regexp_replace(text, 'a+', 'b')",
            "text LIKE 'a%'",
            "text RLIKE 'a'",
        ),
        *(
            "split(text, ' ')",
            "array_contains(split(text, ' '), 'a')",
            "size(split(text, ' '))",
            "concat_ws(',', text)",
        ),
        *(
            "year(at)",
            "hour(at)",
            "date_trunc('HOUR', at)",
            "to_date(at)",
            "date_add(to_date(at), 3)",
            "unix_timestamp(at)",
        ),
        *("at + INTERVAL 3 HOURS", "date_format(at, 'yyyy')", "datediff(to_date(at), DATE '2026-01-01')", "now()"),
        *("current_timestamp()", "current_date()", "CASE WHEN sev > 1 THEN 'a' ELSE 'b' END", "if(sev > 1, 1, 2)"),
        *("coalesce(sev, 0)", "nullif(sev, 0)", "ifnull(sev, 0)", "CAST(sev AS STRING)", "try_cast(text AS INT)"),
        *(
            "struct(id, sev)",
            "array(1, 2)",
            "sev IS NULL",
            "sev IN (1, 2)",
            "distance(x, y, 0, 0)",
            "has_word(text, 'a')",
        ),
    ],
)
def test_ordinary_functions_are_allowed(expression: str) -> None:
    assert compiled(f"SELECT {expression} AS v FROM Reports").columns == ("v",)


@pytest.mark.parametrize(
    "call",
    ["cot(x)", "csc(x)", "sec(x)", "negative(x)", "try_add(sev, 1)", "try_subtract(sev, 1)", "try_multiply(sev, 2)",
     "try_divide(sev, 0)", "dayname(to_date(at))", "monthname(to_date(at))", "make_timestamp(2026, 1, 2, 3, 4, 5)",
     "equal_null(sev, id)", "overlay(text PLACING 'a' FROM 2)", "element_at(array(1), 1)", "log2(x)", "ucase(text)",
     "regr_slope(x, y)", "regr_intercept(x, y)", "regr_r2(x, y)", "max_by(id, x)", "percentile(x, 0.5)"],
)  # fmt: skip
def test_a_function_that_the_parser_knows_by_another_name_is_allowed(call: str) -> None:
    compiled(f"SELECT {call} AS v FROM Reports")


@pytest.mark.parametrize("name", sorted(ANONYMOUS))
def test_a_function_listed_by_name_can_be_called_by_it(name: str) -> None:
    source = Source("", Span(1, 1))
    for call in (f"{name}()", f"{name}(x)", f"{name}(x, 2)"):
        found = parse_one(call, dialect=DIALECT)
        assert isinstance(found, exp.Anonymous), "the list by class is the one that counts"
        check_function(source, found)


@pytest.mark.parametrize("call", ["any(sev > 1)", "array_insert(array(1), 9, 2)", "format_string('%9s', text)"])
def test_functions_that_make_much_of_little_stay_out(call: str) -> None:
    with pytest.raises(InvalidQuery, match="not allowed"):
        compiled(f"SELECT {call} AS v FROM Reports")


@pytest.mark.parametrize(
    "aggregate",
    [
        *(
            "count(*)",
            "count(DISTINCT sev)",
            "sum(sev)",
            "avg(x)",
            "min(x)",
            "max(x)",
            "collect_list(id)",
            "collect_set(sev)",
        ),
        *(
            "max_by(id, x)",
            "min_by(id, x)",
            "approx_count_distinct(sev)",
            "percentile_approx(x, 0.5)",
            "bool_or(sev > 1)",
        ),
        *("count_if(sev > 1)", "stddev(x)", "count(*) FILTER (WHERE sev > 1)", "array_sort(collect_list(id))"),
    ],
)
def test_ordinary_aggregates_group_by_subscription(aggregate: str) -> None:
    sql = compiled(f"SELECT {aggregate} AS v FROM Reports WHERE sev > :k", "k INT").join.sql
    assert "GROUP BY `__s`.`__bs`" in sql


@pytest.mark.parametrize(
    "expression",
    ["lpad(id, 10, '0')", "repeat('ab', 10000)", "space(3)", "array_repeat(sev, 3)", "sequence(1, 10)",
     "sequence(20, 0, -2)", "repeat(repeat('a', 1000), 1000)", "format_number(x, 2)", "repeat(id, -1)", "round(x)",
     "round(x, 2)", "floor(x)", "ceil(x, -1)", "levenshtein(id, text)",
     "replace(replace(replace(text, '{a}', id), '{b}', eventType), '{c}', text)",
     "concat_ws(' - ', id, text, eventType)",
     "length(repeat(id, 10000)) + length(repeat(text, 10000))"],
)  # fmt: skip
def test_small_counts_are_allowed(expression: str) -> None:
    assert compiled(f"SELECT {expression} AS m FROM Reports WHERE sev = :k", PARAMS).columns == ("m",)
