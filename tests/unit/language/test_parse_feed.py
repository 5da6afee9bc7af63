"""CREATE, DROP, PAUSE and RESUME FEED."""

import pytest

from support.refusals import check_refused
from tocsin.language.parser import parse_statement
from tocsin.language.statements import CreateFeed, DropFeed, PauseFeed, ResumeFeed, Statement
from tocsin.model.catalog import FeedSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("CREATE FEED f INTO d", FeedSpec("f", "d"), id="HTTP unless said otherwise"),
        pytest.param("CREATE FEED f INTO d FROM http", FeedSpec("f", "d", "http"), id="HTTP by name"),
        pytest.param(
            "CREATE FEED f INTO d FROM DIRECTORY 'in'",
            FeedSpec("f", "d", "directory", (("path", "in"), ("format", "json"))),
            id="a directory of JSON lines",
        ),
        pytest.param(
            "CREATE FEED f INTO d FROM DIRECTORY 'in' FORMAT csv WITH ('header' = 'true', 'pattern' = '*.csv')",
            FeedSpec(
                "f", "d", "directory", (("path", "in"), ("format", "csv"), ("header", "true"), ("pattern", "*.csv"))
            ),
            id="a directory of CSV with options",
        ),
        pytest.param(
            "CREATE FEED f INTO d FROM KAFKA TOPIC 't' AT 'a:9092, b:9093'",
            FeedSpec("f", "d", "kafka", (("topic", "t"), ("servers", "a:9092,b:9093"))),
            id="a Kafka topic on two servers",
        ),
    ],
)
def test_create_feed(text: str, expected: FeedSpec) -> None:
    assert parse_statement(text) == CreateFeed(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("CREATE FEED IF NOT EXISTS f INTO d", CreateFeed(FeedSpec("f", "d"), True), id="unless there"),
        pytest.param("DROP FEED f", DropFeed("f"), id="drop"),
        pytest.param("DROP FEED IF EXISTS f", DropFeed("f", True), id="drop if there"),
        pytest.param("PAUSE FEED f", PauseFeed("f"), id="pause"),
        pytest.param("RESUME FEED f", ResumeFeed("f"), id="resume"),
    ],
)
def test_other_statements(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("CREATE FEED f", 14, "expected INTO"),
        ("CREATE FEED f INTO d FROM KAFFKA", 27, "did you mean 'KAFKA'"),
        ("CREATE FEED f INTO d FROM DIRECTORY ' '", 37, "the path of a directory"),
        ("CREATE FEED f INTO d FROM KAFKA 't'", 33, "expected TOPIC"),
        ("CREATE FEED f INTO d FROM KAFKA TOPIC 't' AT 'host'", 46, "'host:port'"),
        ("CREATE FEED f INTO d FROM KAFKA TOPIC 't' AT 'a:1,'", 46, "'host:port'"),
        ("CREATE FEED f INTO d WITH ('a' = 'b', 'a' = 'c')", 39, "given twice"),
        ("CREATE FEED f INTO d WITH ('path' = 'b')", 28, "after FROM, not in WITH"),
        ("CREATE FEED f INTO d WITH ('a' = 5)", 34, "the value of the option"),
        ("CREATE FEED f INTO d WITH ()", 28, "the name of an option"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)
