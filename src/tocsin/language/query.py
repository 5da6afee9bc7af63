"""The SELECT inside a statement: kept as written, checked only for where it starts and for its brackets."""

from __future__ import annotations

from tocsin.language.cursor import Cursor
from tocsin.language.statements import Select, Statement
from tocsin.language.tokens import Kind, Token

MAX_NESTING = 64
_CLOSING = {"(": ")", "[": "]"}


def query_text(c: Cursor) -> str:
    """From here to the statement's end, comments inside included, those after it not."""
    if not (c.at("SELECT") or c.at("WITH") or c.at_symbol("(")):
        raise c.unexpected()
    *tokens, _ = c.rest()
    _check_brackets(c, tokens)
    for _ in tokens:
        c.advance()
    return c.source.text[tokens[0].start : tokens[-1].end]


def _check_brackets(c: Cursor, tokens: list[Token]) -> None:
    opened: list[Token] = []
    for token, after in zip(tokens, c.rest()[1:], strict=True):
        if token.kind is not Kind.SYMBOL:
            continue
        if token.text == "," and _ends_a_list(after):
            raise c.problem("nothing follows this ','", at=token, expected="another item, or no comma")
        if token.text in _CLOSING:
            opened.append(token)
            _check_depth(c, opened)
        elif token.text in _CLOSING.values() and (not opened or _CLOSING[opened.pop().text] != token.text):
            raise c.problem(f"nothing is open that {token.text!r} closes", at=token)
    if opened:
        raise c.problem(f"this {opened[-1].text!r} is not closed", at=opened[-1], expected=_CLOSING[opened[-1].text])


def _ends_a_list(token: Token) -> bool:
    """sqlglot passes over a comma in front of these."""
    is_closing = token.kind is Kind.SYMBOL and token.text in _CLOSING.values()
    return is_closing or token.kind is Kind.END or token.keyword in ("FROM", "WHERE", "HAVING")


def _check_depth(c: Cursor, opened: list[Token]) -> None:
    if len(opened) > MAX_NESTING:
        raise c.problem("the query is nested too deeply", at=opened[-1], expected=f"at most {MAX_NESTING} levels")


def select(c: Cursor) -> Statement:
    return Select(query_text(c), span=c.first_span, name_span=c.first_span)
