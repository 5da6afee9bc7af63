"""Brokers and subscriptions."""

import pytest

from support.refusals import check_refused
from tocsin.errors import SyntaxProblem
from tocsin.language.parser import parse_statement
from tocsin.language.statements import (
    ChangeSubscription,
    CreateBroker,
    DropBroker,
    Statement,
    Subscribe,
    Unsubscribe,
)
from tocsin.model.catalog import BrokerSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "CREATE BROKER b AT 'http://localhost:7070'",
            CreateBroker(BrokerSpec("b", "http://localhost:7070")),
            id="create",
        ),
        pytest.param(
            "CREATE BROKER IF NOT EXISTS b AT 'https://[::1]/x'",
            CreateBroker(BrokerSpec("b", "https://[::1]/x"), True),
            id="create unless there",
        ),
        pytest.param(
            "CREATE OR REPLACE BROKER b AT 'http://h'",
            CreateBroker(BrokerSpec("b", "http://h"), or_replace=True),
            id="create, or change its address",
        ),
        pytest.param("DROP BROKER IF EXISTS b", DropBroker("b", True), id="drop"),
        pytest.param("SUBSCRIBE TO c ON b", Subscribe("c", (), "b"), id="subscribe without brackets"),
        pytest.param("SUBSCRIBE TO c() ON b", Subscribe("c", (), "b"), id="subscribe without arguments"),
        pytest.param(
            "SUBSCRIBE TO c('fire', -500) ON b", Subscribe("c", ((None, "fire"), (None, -500)), "b"), id="by position"
        ),
        pytest.param(
            "SUBSCRIBE TO c(kind => 'fire', null => NULL) ON b",
            Subscribe("c", (("kind", "fire"), ("null", None)), "b"),
            id="by name, which may be a keyword",
        ),
        pytest.param(
            "SUBSCRIBE TO c(TRUE, kinds => ARRAY('a', 'b'), n => [1]) ON b",
            Subscribe("c", ((None, True), ("kinds", ("a", "b")), ("n", (1,))), "b"),
            id="by position, then by name",
        ),
        pytest.param("UNSUBSCRIBE 's1'", Unsubscribe("s1"), id="unsubscribe"),
        pytest.param("UNSUBSCRIBE IF EXISTS 's1' FROM c", Unsubscribe("s1", "c", True), id="unsubscribe if there"),
        pytest.param("CHANGE SUBSCRIPTION 's1' TO b", ChangeSubscription("s1", "b"), id="change"),
    ],
)
def test_parse(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:7070",
        "ftp://localhost",
        "http://",
        "http://:80",
        "http://host:99999",
        "http://host:0",
        "http://ho st",
        "http://user:secret@host",
        "http://host/?q=1",
        "http://host/#f",
        "http://[::1",
    ],
)
def test_refuses_what_is_no_url_of_a_broker(url: str) -> None:
    with pytest.raises(SyntaxProblem, match="expected http://host:port") as caught:
        parse_statement(f"CREATE BROKER b AT '{url}'")
    assert caught.value.span is not None
    assert caught.value.span.column == 20


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("SUBSCRIBE TO c(a => 1, 2) ON b", 24, "a value without a name after named ones"),
        ("SUBSCRIBE TO c(a => 1, A => 2) ON b", 24, "parameter 'A' is named twice"),
        ("SUBSCRIBE TO c(fire) ON b", 16, "a value"),
        ("SUBSCRIBE TO c(1)", 18, "expected ON"),
        ("SUBSCRIBE c(1) ON b", 11, "expected TO"),
        ("UNSUBSCRIBE s1", 13, "the id of a subscription, in quotes"),
        ("UNSUBSCRIBE ''", 13, "an empty string"),
        ("CHANGE SUBSCRIPTION 's1' ON b", 26, "expected TO"),
    ],
)
def test_refuses(text: str, column: int, words: str) -> None:
    check_refused(text, column, words)
