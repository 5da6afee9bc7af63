"""Values: strings, numbers, TRUE, FALSE, NULL, ``DATE '…'``, ``TIMESTAMP '…'`` and arrays of these.

A DATE or TIMESTAMP literal is its text; the declared type of where it goes reads it. A number with a point is a
float where that keeps every digit, otherwise a Decimal.
"""

from __future__ import annotations

import math
from decimal import Decimal

from tocsin.language.cursor import Cursor
from tocsin.language.statements import Literal, Scalar
from tocsin.language.tokens import Kind

MAX_DIGITS = 80
_CONSTANTS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


def literal(c: Cursor) -> Literal:
    if c.at("ARRAY"):
        c.advance()
        c.expect_symbol("(")
        return _array(c, ")")
    if c.accept_symbol("["):
        return _array(c, "]")
    return scalar(c)


def _array(c: Cursor, closing: str) -> tuple[Scalar, ...]:
    values: list[Scalar] = []
    if c.accept_symbol(closing):
        return ()
    values.append(scalar(c))
    while c.accept_symbol(","):
        values.append(scalar(c))
    c.expect_symbol(closing)
    return tuple(values)


def scalar(c: Cursor) -> Scalar:
    word = c.token.keyword
    if word in _CONSTANTS:
        c.advance()
        return _CONSTANTS[word]
    if word in ("DATE", "TIMESTAMP"):
        c.advance()
        return c.string("a string")
    if c.token.kind is Kind.STRING:
        return c.string("a string")
    return _signed(c)


def _signed(c: Cursor) -> int | float | Decimal:
    """A number; its sign is read with its digits, since negating a Decimal would round it."""
    sign = ""
    if c.token.kind is Kind.SYMBOL and c.token.text in "+-":
        sign = c.advance().text
    if c.token.kind is not Kind.NUMBER:
        c.tried("a value")
        raise c.unexpected()
    number = _number(c, sign)
    c.advance()
    return number


def _number(c: Cursor, sign: str) -> int | float | Decimal:
    text = c.token.text
    if len(text) > MAX_DIGITS:
        raise c.problem(f"a number of {len(text)} characters", expected=f"at most {MAX_DIGITS}")
    if text.isdigit():
        return int(sign + text)
    number = float(sign + text)
    if not math.isfinite(number):
        raise c.problem(f"{text} is out of range", expected="a number below 1.8e308")
    exact = Decimal(sign + text)
    return number if "e" in text.lower() or Decimal(repr(number)) == exact else exact
