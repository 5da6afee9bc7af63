"""Where words, strings and comments begin and end."""

import pytest

from tocsin.errors import Span, SyntaxProblem
from tocsin.language.tokens import Kind, Source, scan


def texts(script: str) -> list[str]:
    return [token.text for token in scan(Source(script))][:-1]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("a b1 _c", ["a", "b1", "_c"], id="words"),
        pytest.param("'it''s' x", ["'it''s'", "x"], id="a doubled quote stays inside"),
        pytest.param("'a;b' ;", ["'a;b'", ";"], id="a semicolon in a string is text"),
        pytest.param(r"LOAD 'C:\dir\' x", ["LOAD", r"'C:\dir\'", "x"], id="a backslash in a statement is a backslash"),
        pytest.param(r"SELECT 'a\'b' x", ["SELECT", r"'a\'b'", "x"], id="a backslash in a query escapes"),
        pytest.param(r"SELECT r'a\' x", ["SELECT", r"r'a\'", "x"], id="a raw string in a query has no escapes"),
        pytest.param('SELECT "a;b"', ["SELECT", '"a;b"'], id="double quotes make a string in a query"),
        pytest.param("a -- b ; c\nd", ["a", "d"], id="a line comment ends with its line"),
        pytest.param("a /* b /* c */ ; */ d", ["a", "d"], id="block comments nest"),
        pytest.param("'--' x '/*'", ["'--'", "x", "'/*'"], id="no comment starts inside a string"),
        pytest.param("`a b`.c", ["`a b`", ".", "c"], id="back-quotes make one token"),
        pytest.param("1 2.5 .5 1e-3 512MB", ["1", "2.5", ".5", "1e-3", "512", "MB"], id="numbers"),
        pytest.param("a=>1>=2", ["a", "=>", "1", ">", "=", "2"], id="the arrow is one symbol"),
        pytest.param("\ufeffSHOW", ["SHOW"], id="a byte order mark is space"),
        pytest.param("é", ["é"], id="an unknown character is a symbol"),
    ],
)
def test_scan(script: str, expected: list[str]) -> None:
    assert texts(script) == expected


@pytest.mark.parametrize(
    ("script", "literal"),
    [
        pytest.param(r"CREATE CHANNEL c() AS SELECT 'a\'b;'", r"'a\'b;'", id="after the AS of a channel"),
        pytest.param(r"SELECT '\\'; LOAD DATASET d FROM '\'", r"'\'", id="not in the statement after it"),
        pytest.param(r"CREATE DATASET d (as STRING) '\' ;", r"'\'", id="not after an AS in brackets"),
    ],
)
def test_query_rules_hold_only_inside_a_query(script: str, literal: str) -> None:
    strings = [token.text for token in scan(Source(script)) if token.kind is Kind.STRING]
    assert strings[-1] == literal


@pytest.mark.parametrize(
    ("script", "span"),
    [
        pytest.param("SHOW\n  'abc", Span(2, 3), id="a string"),
        pytest.param("SHOW `abc", Span(1, 6), id="a name"),
        pytest.param('SELECT "abc', Span(1, 8), id="a string in double quotes"),
        pytest.param("SHOW /* a /* b */", Span(1, 6), id="a comment"),
        pytest.param("'a'';", Span(1, 1), id="a string that ends in a doubled quote"),
    ],
)
def test_unclosed_is_an_error_where_it_opens(script: str, span: Span) -> None:
    with pytest.raises(SyntaxProblem, match="is not closed") as caught:
        texts(script)
    assert caught.value.span == span


def test_spans_count_lines_and_columns_from_one() -> None:
    source = Source("ab\ncd\n\ne")
    assert [source.span(i) for i in (0, 1, 3, 6, 7)] == [Span(1, 1), Span(1, 2), Span(2, 1), Span(3, 1), Span(4, 1)]
