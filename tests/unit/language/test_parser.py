"""Scripts as a whole: splitting, places, limits."""

import pytest

from tocsin.errors import LimitExceeded, Span, SyntaxProblem
from tocsin.language.parser import MAX_SCRIPT_BYTES, complete_statement, parse_script, parse_statement
from tocsin.language.statements import DropDataset, LoadDataset, Select, Show, Shown

SHOW = Show(Shown.DATASETS)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param(" ; -- no\n;/* none */", [], id="only space, comments and semicolons"),
        pytest.param("SHOW DATASETS", [SHOW], id="one without a semicolon"),
        pytest.param("SHOW DATASETS;;SHOW DATASETS;", [SHOW, SHOW], id="two and an empty one between"),
        pytest.param(
            "LOAD DATASET d FROM 'a;b.csv'", [LoadDataset("d", "a;b.csv", "csv")], id="a semicolon in a string"
        ),
        pytest.param(
            "SELECT ';' /* ; */ FROM d -- ;\n; DROP DATASET d",
            [Select("SELECT ';' /* ; */ FROM d"), DropDataset("d")],
            id="semicolons in a query's string and comments",
        ),
        pytest.param("(SELECT 1)", [Select("(SELECT 1)")], id="a query in brackets"),
        pytest.param(
            "WITH t AS (SELECT 1) SELECT * FROM t", [Select("WITH t AS (SELECT 1) SELECT * FROM t")], id="WITH"
        ),
    ],
)
def test_parse_script(script: str, expected: list[object]) -> None:
    assert parse_script(script) == expected


def test_spans_are_places_in_the_whole_script() -> None:
    script = "SHOW DATASETS;\n\n  DROP DATASET\n d; SELECT 1"
    found = parse_script(script)
    assert [s.span for s in found] == [Span(1, 1), Span(3, 3), Span(4, 5)]
    assert found[1].name_span == Span(4, 2)


def test_an_error_is_a_place_in_the_whole_script() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_script("SHOW DATASETS;\n -- next\n  CRATE DATASET d (a INT)")
    assert caught.value.span == Span(3, 3)
    assert caught.value.suggestion == "; did you mean 'CREATE'?"
    assert caught.value.expected is not None
    assert caught.value.expected.startswith("CREATE, DROP, ALTER")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "there is no statement", id="none"),
        pytest.param("SHOW DATASETS; SHOW FEEDS", "line 1, column 16: a second statement", id="two"),
        pytest.param("42", "unexpected '42'; expected CREATE", id="a number"),
        pytest.param("`SHOW` DATASETS", "unexpected '`SHOW`'", id="a keyword in back-quotes"),
        pytest.param("DROP TABLE t", "expected DATASET, FEED, CHANNEL or BROKER", id="what is not ours"),
        pytest.param("SHOW DATASETS SHOW FEEDS", "unexpected 'SHOW'; expected ';'", id="a forgotten semicolon"),
    ],
)
def test_parse_statement_refuses(text: str, words: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_statement(text)
    assert words in str(caught.value)


def test_a_script_is_bounded_in_bytes() -> None:
    fits = "--" + "é" * ((MAX_SCRIPT_BYTES - 2) // 2)
    assert parse_script(fits) == []
    with pytest.raises(LimitExceeded, match="1,048,576"):
        parse_script(fits + "é")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("SHOW DATASETS;", True, id="a statement"),
        pytest.param("SHOW DATASETS; -- done\n /* yes */ ", True, id="a statement and comments"),
        pytest.param("SHOW DATASETS", False, id="no semicolon"),
        pytest.param("SHOW DATASETS; SHOW", False, id="the second is open"),
        pytest.param("SELECT ';", False, id="an open string"),
        pytest.param("SELECT 1 -- ;", False, id="a semicolon in a comment"),
        pytest.param("SELECT 1 /* ;", False, id="an open comment"),
        pytest.param(r"SELECT 'a\';", False, id="a string that an escape keeps open"),
        pytest.param(r"LOAD DATASET d FROM 'a\';", True, id="a backslash that escapes nothing"),
        pytest.param("", False, id="nothing"),
        pytest.param("nonsense ;", True, id="what the parser will refuse"),
    ],
)
def test_complete_statement(text: str, expected: bool) -> None:
    assert complete_statement(text) is expected


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("SELECT kind, FROM r", 12),
        ("SELECT f(a,) FROM r", 11),
        ("SELECT a FROM r ORDER BY a,", 27),
        ("SELECT a FROM r, WHERE a = 1", 16),
    ],
)
def test_a_comma_that_nothing_follows_is_refused(query: str, column: int) -> None:
    with pytest.raises(SyntaxProblem, match="nothing follows this ','") as caught:
        parse_script(query)
    assert caught.value.span == Span(1, column)


def test_commas_in_strings_names_and_between_items_are_fine() -> None:
    query = "SELECT 'a,', `b,`, [1, 2], f(c, d) FROM r, s WHERE x IN (1, 2)"
    assert parse_script(query) == [Select(query)]
