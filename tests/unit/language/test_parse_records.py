"""INSERT, UPSERT and DELETE, and the values in them."""

from decimal import Decimal

import pytest

from support.refusals import check_refused
from tocsin.language.parser import parse_statement
from tocsin.language.statements import DeleteRecords, InsertRecords, Literal


def inserted(text: str) -> InsertRecords:
    statement = parse_statement(text)
    assert isinstance(statement, InsertRecords)
    return statement


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("'it''s'", "it's", id="a string"),
        pytest.param("''", "", id="an empty string"),
        pytest.param("-5", -5, id="a negative integer"),
        pytest.param("+5", 5, id="a plus sign"),
        pytest.param("9223372036854775808", 2**63, id="an integer of any size"),
        pytest.param("1.5", 1.5, id="a float"),
        pytest.param("-1e-3", -0.001, id="an exponent"),
        pytest.param("0.12345678901234567891", Decimal("0.12345678901234567891"), id="digits a float would lose"),
        pytest.param(
            "-1.2345678901234567890123456789012", Decimal("-1.2345678901234567890123456789012"), id="and more"
        ),
        pytest.param("NULL", None, id="null"),
        pytest.param("true", True, id="a boolean"),
        pytest.param("DATE '2026-01-31'", "2026-01-31", id="a date is its text"),
        pytest.param("TIMESTAMP '2026-01-31T12:00:00Z'", "2026-01-31T12:00:00Z", id="a timestamp is its text"),
        pytest.param("ARRAY('a', 'b')", ("a", "b"), id="an array"),
        pytest.param("[1, NULL, -2.5]", (1, None, -2.5), id="an array in square brackets"),
        pytest.param("ARRAY()", (), id="an empty array"),
        pytest.param("[]", (), id="another empty array"),
    ],
)
def test_values(text: str, value: Literal) -> None:
    ((found,),) = inserted(f"INSERT INTO d VALUES ({text})").rows
    assert found == value
    assert type(found) is type(value)


def test_rows_and_columns() -> None:
    found = inserted("UPSERT INTO d (a, `b`) VALUES (1, 'x'), (2, 'y')")
    assert found == InsertRecords("d", ("a", "b"), ((1, "x"), (2, "y")))


@pytest.mark.parametrize(
    ("text", "columns", "keys"),
    [
        pytest.param("k = 'a'", ("k",), (("a",),), id="one key"),
        pytest.param("a = 1 AND b = 'x'", ("a", "b"), ((1, "x"),), id="a key of two columns"),
        pytest.param("k IN ('a', 'b')", ("k",), (("a",), ("b",)), id="several keys"),
        pytest.param("(a, b) IN ((1, 'x'), (2, 'y'))", ("a", "b"), ((1, "x"), (2, "y")), id="several of two columns"),
    ],
)
def test_delete_names_records_by_key(text: str, columns: tuple[str, ...], keys: tuple[tuple[str | int, ...]]) -> None:
    assert parse_statement(f"DELETE FROM d WHERE {text}") == DeleteRecords("d", columns, keys)


def test_delete_pairs_columns_with_values() -> None:
    statement = DeleteRecords("d", ("a", "b"), ((1, "x"), (2, "y")))
    assert statement.where == ((("a", 1), ("b", "x")), (("a", 2), ("b", "y")))


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("INSERT INTO d VALUES (1, 2), (3)", 30, "expected 2 values"),
        ("INSERT INTO d (a, b) VALUES (1)", 29, "expected 2 values"),
        ("INSERT INTO d (a, A) VALUES (1, 2)", 19, "column 'A' is named twice"),
        ("INSERT INTO d VALUES ()", 23, "a value"),
        ("INSERT INTO d VALUES (a)", 23, "a value"),
        ("INSERT INTO d VALUES ([[1]])", 24, "a value"),
        ("INSERT INTO d VALUES (- 'a')", 25, "a value"),
        ("INSERT INTO d VALUES (1e999)", 23, "out of range"),
        (f"INSERT INTO d VALUES ({'1' * 81})", 23, "at most 80"),
        ("INSERT INTO d VALUES (1 2)", 25, "expected ',' or ')'"),
        ("INSERT INTO d SELECT 1", 15, "expected '(' or VALUES"),
        ("DELETE FROM d", 14, "expected WHERE"),
        ("DELETE FROM d WHERE k = NULL", 25, "never NULL"),
        ("DELETE FROM d WHERE k > 1", 23, "expected IN or '='"),
        ("DELETE FROM d WHERE k = 1 OR k = 2", 27, "expected AND or ';'"),
        ("DELETE FROM d WHERE k = 1 AND k = 2", 31, "named twice"),
        ("DELETE FROM d WHERE (a, b) IN ((1))", 32, "2 values, one for each column"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)
