"""Who may say which statement."""

from __future__ import annotations

import pytest

from tocsin.datacluster.statements import check_allowed
from tocsin.errors import Refused
from tocsin.language.parser import parse_statement
from tocsin.tokens import Principal

CREATE = "CREATE BROKER IF NOT EXISTS north AT 'http://127.0.0.1:1/notify'"


def allows(text: str, *capabilities: str) -> bool:
    statement = parse_statement(text)
    try:
        check_allowed(statement, Principal("ann", capabilities))
    except Refused:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "capabilities", "expected"),
    [
        pytest.param(CREATE, ["broker:North"], True, id="a broker says where it is"),
        pytest.param(CREATE, ["broker:*"], True, id="whoever is any broker says so of one"),
        pytest.param(CREATE, ["broker:south", "read", "ingest:*", "subscribe:*"], False, id="not of another"),
        pytest.param("DROP BROKER north", ["broker:north"], False, id="a broker does not drop itself"),
        pytest.param("DROP BROKER north", ["admin"], True, id="an administrator drops it"),
        pytest.param("SHOW DATASETS", ["read"], True, id="reading needs read"),
        pytest.param("SHOW DATASETS", ["broker:north"], False, id="which a broker has not of itself"),
        pytest.param("INSERT INTO R VALUES (1)", ["ingest:R"], True, id="appending needs ingest"),
        pytest.param("INSERT INTO R VALUES (1)", ["ingest:S"], False, id="for that dataset"),
    ],
)
def test_who_may_say_what(text: str, capabilities: list[str], expected: bool):
    assert allows(text, *capabilities) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW DATASETS", "SHOW needs the capability 'read'"),
        ("EXPLAIN CHANNEL Near", "EXPLAIN CHANNEL needs the capability 'read'"),
        ("INSERT INTO R VALUES (1)", "INSERT needs the capability 'ingest:R'"),
        ("DROP DATASET R", "DROP DATASET needs the capability 'admin'"),
    ],
)
def test_a_refusal_says_the_statement_as_it_is_written(text: str, expected: str):
    with pytest.raises(Refused, match=expected):
        check_allowed(parse_statement(text), Principal("ann", ()))
