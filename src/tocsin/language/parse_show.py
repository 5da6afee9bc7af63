"""SHOW and DESCRIBE."""

from __future__ import annotations

from tocsin.errors import SyntaxProblem
from tocsin.language.cursor import Cursor
from tocsin.language.parse_channel import CHANNEL_NAME
from tocsin.language.parse_dataset import DATASET_NAME
from tocsin.language.statements import Describe, Show, Shown, Statement
from tocsin.language.tokens import Kind

_NARROWED = {
    Shown.SUBSCRIPTIONS: CHANNEL_NAME,
    Shown.EXECUTIONS: CHANNEL_NAME,
    Shown.DEAD_LETTERS: DATASET_NAME,
}


def show(c: Cursor) -> Statement:
    c.expect("SHOW")
    what = next((shown for shown in Shown if shown.value.split()[0] == c.token.keyword), None)
    if what is None:
        raise _not_shown(c)
    c.expect(*what.value.split())
    narrowed = what in _NARROWED and c.accept("OF")
    name_span = c.span()
    name = c.name(_NARROWED[what]) if narrowed else None
    return Show(what, name, span=c.first_span, name_span=name_span)


def _not_shown(c: Cursor) -> SyntaxProblem:
    for shown in Shown:
        c.tried(shown.value)
    return c.unexpected()


def describe(c: Cursor) -> Statement:
    c.expect("DESCRIBE")
    kind = _kind(c)
    name_span = c.span()
    return Describe(c.name("a dataset or channel name"), kind, span=c.first_span, name_span=name_span)


def _kind(c: Cursor) -> str | None:
    """DATASET and CHANNEL are names themselves where nothing follows."""
    if c.peek().kind is Kind.END:
        return None
    return next((word.lower() for word in ("DATASET", "CHANNEL") if c.accept(word)), None)
