"""Scripts into statements.

Statements are separated by ``;``. The first error stops the reading: a script is understood whole or not at
all, so nothing of it is executed before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tocsin.errors import LimitExceeded, SyntaxProblem
from tocsin.language.cursor import Cursor
from tocsin.language.parse_broker import (
    change_subscription,
    create_broker,
    drop_broker,
    subscribe,
    unsubscribe,
)
from tocsin.language.parse_channel import (
    create_channel,
    drop_channel,
    explain_channel,
    pause_channel,
    resume_channel,
)
from tocsin.language.parse_dataset import alter_dataset, create_dataset, drop_dataset, load_dataset
from tocsin.language.parse_feed import create_feed, drop_feed, pause_feed, resume_feed
from tocsin.language.parse_records import delete_records, insert_records
from tocsin.language.parse_show import describe, show
from tocsin.language.query import select
from tocsin.language.statements import Statement
from tocsin.language.tokens import Kind, Source, Token, scan

MAX_SCRIPT_BYTES = 1 << 20

_Parser = Callable[[Cursor], Statement]
_REPLACE: dict[str, _Parser] = {
    "CONTINUOUS": partial(create_channel, or_replace=True),
    "PUSH": partial(create_channel, or_replace=True),
    "CHANNEL": partial(create_channel, or_replace=True),
    "BROKER": partial(create_broker, or_replace=True),
}


def _or_replace(c: Cursor) -> Statement:
    c.expect("OR", "REPLACE")
    return c.choose(_REPLACE)(c)


_CREATE: dict[str, _Parser] = {
    "DATASET": create_dataset,
    "ACTIVE": create_dataset,
    "FEED": create_feed,
    "CHANNEL": create_channel,
    "OR": _or_replace,
    "CONTINUOUS": create_channel,
    "PUSH": create_channel,
    "BROKER": create_broker,
}
_DROP: dict[str, _Parser] = {
    "DATASET": drop_dataset,
    "FEED": drop_feed,
    "CHANNEL": drop_channel,
    "BROKER": drop_broker,
}
_PAUSE: dict[str, _Parser] = {"CHANNEL": pause_channel, "FEED": pause_feed}
_RESUME: dict[str, _Parser] = {"CHANNEL": resume_channel, "FEED": resume_feed}


def _second_word(table: dict[str, _Parser]) -> _Parser:
    """The statements of one verb, told apart by the word after it."""

    def parse(c: Cursor) -> Statement:
        c.advance()
        return c.choose(table)(c)

    return parse


_STATEMENTS: dict[str, _Parser] = {
    "CREATE": _second_word(_CREATE),
    "DROP": _second_word(_DROP),
    "ALTER": alter_dataset,
    "LOAD": load_dataset,
    "INSERT": insert_records,
    "UPSERT": insert_records,
    "DELETE": delete_records,
    "PAUSE": _second_word(_PAUSE),
    "RESUME": _second_word(_RESUME),
    "EXPLAIN": explain_channel,
    "SUBSCRIBE": subscribe,
    "UNSUBSCRIBE": unsubscribe,
    "CHANGE": change_subscription,
    "SHOW": show,
    "DESCRIBE": describe,
    "SELECT": select,
    "WITH": select,
}


def parse_script(text: str) -> list[Statement]:
    """Every statement of a script, or the first SyntaxProblem in it."""
    _check_length(text)
    source = Source(text)
    return [_parse_one(Cursor(source, tokens)) for tokens in _split(scan(source))]


def parse_statement(text: str) -> Statement:
    """The one statement that the text holds; a ``;`` at its end is optional."""
    statements = parse_script(text)
    if not statements:
        raise SyntaxProblem("there is no statement here", expected="one statement")
    if len(statements) > 1:
        raise SyntaxProblem("a second statement", statements[1].span, expected="one statement only")
    return statements[0]


def complete_statement(text: str) -> bool:
    """Does the text end a statement: is a ``;`` last, apart from space and comments?

    A ``;`` in a string, a name or a comment does not count, and nothing is complete while one of these is open.
    """
    last: Token | None = None
    try:
        for token in scan(Source(text)):
            last = last if token.kind is Kind.END else token
    except SyntaxProblem:
        return False
    return last is not None and last.kind is Kind.SYMBOL and last.text == ";"


def _check_length(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_SCRIPT_BYTES:
        raise LimitExceeded("length of a script in bytes", MAX_SCRIPT_BYTES, size)


def _split(tokens: Iterator[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement with an END after them; empty statements are left out."""
    current: list[Token] = []
    for token in tokens:
        is_end = token.kind is Kind.END or (token.kind is Kind.SYMBOL and token.text == ";")
        if not is_end:
            current.append(token)
        elif current:
            yield [*current, Token(Kind.END, "", token.start, token.start)]
            current = []


def _parse_one(c: Cursor) -> Statement:
    statement = select(c) if c.token.text == "(" else c.choose(_STATEMENTS)(c)
    c.end()
    return statement
