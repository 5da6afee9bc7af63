"""CREATE, DROP, PAUSE, RESUME and EXPLAIN CHANNEL."""

import pytest

from support.refusals import check_refused
from tocsin.errors import Span
from tocsin.language.parser import parse_script, parse_statement
from tocsin.language.statements import (
    CreateChannel,
    DropChannel,
    ExplainChannel,
    PauseChannel,
    ResumeChannel,
    Statement,
)
from tocsin.model.catalog import ChannelSpec, Parameter, Retention
from tocsin.model.types import SqlType

KIND = Parameter("kind", SqlType("STRING"))


def created(text: str) -> CreateChannel:
    statement = parse_statement(text)
    assert isinstance(statement, CreateChannel)
    return statement


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "CREATE CHANNEL c(kind STRING) PERIOD '10s' AS SELECT 1",
            ChannelSpec("c", (KIND,), "SELECT 1", period_s=10),
            id="periodic",
        ),
        pytest.param(
            "CREATE CONTINUOUS PUSH CHANNEL c() AS SELECT 1",
            ChannelSpec("c", (), "SELECT 1", continuous=True, push=True),
            id="continuous and pushing",
        ),
        pytest.param(
            "create push continuous channel c as select 1",
            ChannelSpec("c", (), "select 1", continuous=True, push=True),
            id="without brackets, in lower case, the other way round",
        ),
        pytest.param(
            "CREATE PUSH CHANNEL c() RETAIN '7 days' AND 1 GB PERIOD 'PT1M' AS SELECT 1",
            ChannelSpec("c", (), "SELECT 1", push=True, period_s=60, retain=Retention(604_800, None, 10**9)),
            id="with RETAIN ahead of PERIOD",
        ),
        pytest.param(
            "CREATE CONTINUOUS CHANNEL c(a ARRAY<INT>) AS (SELECT 1) UNION ALL (SELECT 2)",
            ChannelSpec(
                "c",
                (Parameter("a", SqlType("INT", is_array=True)),),
                "(SELECT 1) UNION ALL (SELECT 2)",
                continuous=True,
            ),
            id="a query that starts with a bracket",
        ),
        pytest.param(
            "CREATE CONTINUOUS CHANNEL c() AS WITH t AS (SELECT 1) SELECT * FROM t",
            ChannelSpec("c", (), "WITH t AS (SELECT 1) SELECT * FROM t", continuous=True),
            id="a query that starts with WITH",
        ),
        pytest.param(
            "CREATE CONTINUOUS CHANNEL as() AS SELECT 1",
            ChannelSpec("as", (), "SELECT 1", continuous=True),
            id="a channel called as",
        ),
    ],
)
def test_create_channel(text: str, expected: ChannelSpec) -> None:
    assert created(text).spec == expected


def test_the_query_is_kept_as_written_with_its_place() -> None:
    query = "SELECT r.id, 'it\\'s; so' AS s -- why\n  FROM reports r /* ; */\n WHERE r.kind = :kind"
    script = f"SHOW DATASETS;\nCREATE CONTINUOUS CHANNEL c(kind STRING)\nAS  {query}  -- end\n;"
    _, found = parse_script(script)
    assert isinstance(found, CreateChannel)
    assert found.spec.query == query
    assert (found.span, found.name_span, found.query_span) == (Span(2, 1), Span(2, 27), Span(3, 5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("OR REPLACE CHANNEL", (True, False), id="or replace"),
        pytest.param("CHANNEL IF NOT EXISTS", (False, True), id="unless there"),
        pytest.param("CHANNEL", (False, False), id="neither"),
    ],
)
def test_what_to_do_with_an_existing_one(text: str, expected: tuple[bool, bool]) -> None:
    found = created(f"CREATE {text} c() PERIOD '1s' AS SELECT 1")
    assert (found.or_replace, found.if_not_exists) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("DROP CHANNEL c", DropChannel("c"), id="drop"),
        pytest.param("DROP CHANNEL IF EXISTS c", DropChannel("c", True), id="drop if there"),
        pytest.param("DROP CHANNEL c CASCADE", DropChannel("c", cascade=True), id="drop with its subscriptions"),
        pytest.param("PAUSE CHANNEL c", PauseChannel("c"), id="pause"),
        pytest.param("RESUME CHANNEL c", ResumeChannel("c"), id="resume"),
        pytest.param("EXPLAIN CHANNEL c", ExplainChannel("c"), id="explain"),
    ],
)
def test_other_statements(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("CREATE CHANNEL c() AS SELECT 1", 20, "this channel has no PERIOD"),
        ("CREATE CONTINUOUS CHANNEL c() PERIOD '1s' AS SELECT 1", 31, "runs as data arrives; expected no PERIOD"),
        ("CREATE CHANNEL c() PERID '1s' AS SELECT 1", 20, "expected PERIOD, RETAIN or AS; did you mean 'PERIOD'"),
        ("CREATE CHANNEL c() PERIOD '1s' SELECT 1", 32, "expected RETAIN or AS"),
        ("CREATE CHANNEL c() PERIOD '1s' PERIOD '1s' AS SELECT 1", 32, "expected RETAIN or AS"),
        ("CREATE CHANNEL c() PERIOD '0s' AS SELECT 1", 27, "whole milliseconds"),
        ("CREATE CHANNEL c() PERIOD 10 AS SELECT 1", 27, "a duration such as '10s'"),
        ("CREATE CONTINUOUS CHANNEL c() AS DROP DATASET d", 34, "expected SELECT, WITH or '('"),
        ("CREATE CONTINUOUS CHANNEL c() AS", 33, "ends too early; expected SELECT"),
        ("CREATE CONTINUOUS CHANNEL c(a INT, A INT) AS SELECT 1", 36, "parameter 'A' is named twice"),
        ("CREATE CONTINUOUS CHANNEL c(a) AS SELECT 1", 30, "a type"),
        ("CREATE OR REPLACE CHANNEL IF NOT EXISTS c() PERIOD '1s' AS SELECT 1", 27, "exclude each other"),
        ("CREATE OR REPLACE DATASET d (a INT)", 19, "expected CONTINUOUS, PUSH, CHANNEL or BROKER"),
        ("CREATE PUSH PUSH CHANNEL c() AS SELECT 1", 13, "expected CONTINUOUS or CHANNEL"),
        ("CREATE CONTINUOUS CHANNEL c() AS SELECT (1", 41, "this '(' is not closed"),
        ("CREATE CONTINUOUS CHANNEL c() AS SELECT 1)", 42, "nothing is open that ')' closes"),
        ("CREATE CONTINUOUS CHANNEL c() AS SELECT (1]", 43, "nothing is open that ']' closes"),
        (f"CREATE CONTINUOUS CHANNEL c() AS SELECT {'(' * 65}1{')' * 65}", 105, "nested too deeply"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)
