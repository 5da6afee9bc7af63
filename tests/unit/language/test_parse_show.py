"""SHOW and DESCRIBE."""

import pytest

from support.refusals import check_refused
from tocsin.language.parser import parse_statement
from tocsin.language.statements import Describe, Show, Shown, Statement


@pytest.mark.parametrize("what", list(Shown))
def test_shows_everything_of_a_kind(what: Shown) -> None:
    assert parse_statement(f"show {what.value.lower()}") == Show(what)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("SHOW SUBSCRIPTIONS OF c", Show(Shown.SUBSCRIPTIONS, "c"), id="subscriptions of a channel"),
        pytest.param("SHOW EXECUTIONS OF c", Show(Shown.EXECUTIONS, "c"), id="executions of a channel"),
        pytest.param("SHOW DEAD LETTERS OF d", Show(Shown.DEAD_LETTERS, "d"), id="dead letters of a dataset"),
        pytest.param("DESCRIBE d", Describe("d"), id="describe anything"),
        pytest.param("DESCRIBE DATASET d", Describe("d", "dataset"), id="describe a dataset"),
        pytest.param("DESCRIBE CHANNEL d", Describe("d", "channel"), id="describe a channel"),
        pytest.param("DESCRIBE channel", Describe("channel"), id="describe what is called channel"),
    ],
)
def test_parse(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("SHOW TABLES", 6, "EXECUTIONS or DEAD LETTERS"),
        ("SHOW CHANELS", 6, "did you mean 'CHANNELS'"),
        ("SHOW DEAD LETERS", 11, "expected LETTERS"),
        ("SHOW DATASETS OF x", 15, "unexpected 'OF'; expected ';'"),
        ("SHOW EXECUTIONS c", 17, "expected OF or ';'"),
        ("DESCRIBE", 9, "a dataset or channel name"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)
