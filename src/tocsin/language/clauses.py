"""Clauses that several statements share: IF EXISTS, types, RETAIN, FORMAT, lists in brackets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tocsin.errors import BadArgument, SyntaxProblem, nearest
from tocsin.language.cursor import Cursor, either
from tocsin.language.tokens import Kind, Token
from tocsin.language.units import parse_duration, parse_size
from tocsin.model.catalog import Retention
from tocsin.model.types import ALIASES, SCALARS, SqlType

MAX_NAMES = 1000  # columns, parameters or arguments
MAX_PRECISION = 38
MAX_DURATION_MS = 36_500 * 86_400_000
FORMATS = {"JSON": "json", "JSONL": "json", "NDJSON": "json", "CSV": "csv", "PARQUET": "parquet"}
_SHOWN_TYPES = either([*SCALARS[:-1], "DECIMAL(p, s)", "ARRAY<type>"])
_T = TypeVar("_T")


def if_exists(c: Cursor) -> bool:
    return _condition(c, "IF", "EXISTS")


def if_not_exists(c: Cursor) -> bool:
    return _condition(c, "IF", "NOT", "EXISTS")


def new_or_not(c: Cursor, or_replace: bool) -> bool:
    """IF NOT EXISTS, which must not follow OR REPLACE."""
    at = c.token
    lenient = if_not_exists(c)
    if lenient and or_replace:
        raise c.problem("OR REPLACE and IF NOT EXISTS exclude each other", at=at, expected="one of them")
    return lenient


def _condition(c: Cursor, *words: str) -> bool:
    """IF starts the clause when a word follows it; otherwise it is a name."""
    found = c.token.keyword == "IF" and c.peek().kind is Kind.WORD
    if found:
        c.expect(*words)
    else:
        c.tried(" ".join(words))
    return found


def filled(c: Cursor, what: str) -> str:
    """A string that is not blank."""
    at = c.token
    text = c.string(what)
    if not text.strip():
        raise c.problem("an empty string", at=at, expected=what)
    return text


def listed(c: Cursor, item: Callable[[Cursor], _T]) -> list[_T]:
    """``(item, item, …)``, at least one."""
    c.expect_symbol("(")
    items = [item(c)]
    while c.accept_symbol(","):
        items.append(item(c))
    c.expect_symbol(")")
    return items


def refuse_twice(c: Cursor, name: str, seen: list[str], what: str, at: Token) -> None:
    """Names differ in more than case, and there is an end to them."""
    if name.lower() in (s.lower() for s in seen):
        raise c.problem(f"{what} {name!r} is named twice", at=at, expected="different names")
    if len(seen) >= MAX_NAMES:
        raise c.problem(f"too many: {what} {name!r}", at=at, expected=f"at most {MAX_NAMES}")


def sql_type(c: Cursor) -> SqlType:
    if not c.accept("ARRAY"):
        return _scalar_type(c)
    c.expect_symbol("<")
    if c.at("ARRAY"):
        raise c.problem("an array holds scalars, not arrays", expected=either(SCALARS))
    inner = _scalar_type(c)
    c.expect_symbol(">")
    return SqlType(inner.name, inner.precision, inner.scale, is_array=True)


def _scalar_type(c: Cursor) -> SqlType:
    name = ALIASES.get(c.token.keyword, c.token.keyword)
    if name not in SCALARS:
        raise _unknown_type(c)
    c.advance()
    return _decimal(c) if name == "DECIMAL" else SqlType(name)


def _unknown_type(c: Cursor) -> SyntaxProblem:
    if c.token.kind is not Kind.WORD:
        c.tried(f"a type: {_SHOWN_TYPES}")
        return c.unexpected()
    suggestion = nearest(c.token.keyword, [*SCALARS, *ALIASES, "ARRAY"])
    return SyntaxProblem(
        f"{c.token.text!r} is not a type", c.span(), expected=f"a type: {_SHOWN_TYPES}", suggestion=suggestion
    )


def _decimal(c: Cursor) -> SqlType:
    """DECIMAL alone is DECIMAL(10, 0), as in Spark."""
    if not c.accept_symbol("("):
        return SqlType("DECIMAL", 10, 0)
    at = c.token
    precision = c.whole("a number of digits")
    scale = c.whole("a number of decimals") if c.accept_symbol(",") else 0
    c.expect_symbol(")")
    if not 1 <= precision <= MAX_PRECISION or scale > precision:
        raise c.problem(
            f"DECIMAL({precision}, {scale}) cannot be",
            at=at,
            expected=f"1 to {MAX_PRECISION} digits, at most all of them decimals",
        )
    return SqlType("DECIMAL", precision, scale)


def duration(c: Cursor, what: str) -> float:
    """A string that is a duration of one millisecond to a century, in whole milliseconds."""
    at = c.token
    text = c.string(what)
    try:
        milliseconds = parse_duration(text) * 1000
    except BadArgument as bad:
        raise c.problem(f"{text[:40]!r} is not a duration", at=at, expected=bad.expected) from None
    whole = round(milliseconds)
    if not 1 <= whole <= MAX_DURATION_MS or abs(milliseconds - whole) > 1e-6:
        raise c.problem(f"{text[:40]!r} cannot be kept", at=at, expected="whole milliseconds, at most 36500 days")
    return whole / 1000


def retention(c: Cursor) -> Retention:
    """What follows RETAIN: limits joined by AND, each kind at most once."""
    limits: dict[str, float] = {}
    while True:
        at = c.token
        kind, value = _limit(c)
        if kind in limits:
            raise c.problem("RETAIN has two limits of one kind", at=at, expected="one of each: age, RECORDS, size")
        limits[kind] = value
        if not c.accept("AND"):
            age, records, size = (limits.get(k) for k in ("age", "records", "size"))
            return Retention(age, None if records is None else int(records), None if size is None else int(size))


def _limit(c: Cursor) -> tuple[str, float]:
    if c.token.kind is not Kind.NUMBER:
        return "age", duration(c, "a duration such as '1 hour', a number of RECORDS or a size such as 512 MB")
    if c.peek().keyword == "RECORDS":
        return "records", _above_zero(c, c.token, c.whole("a whole number of records"))
    number = c.advance()
    for unit in ("RECORDS", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"):
        c.tried(unit)
    return "size", _above_zero(c, number, _size(c, number))


def _above_zero(c: Cursor, at: Token, value: int) -> int:
    """The value, its unit stepped over."""
    if value <= 0:
        raise c.problem("RETAIN 0 would keep nothing", at=at, expected="a number above 0")
    c.advance()
    return value


def _size(c: Cursor, number: Token) -> int:
    try:
        return parse_size(f"{number.text} {c.token.keyword}")
    except BadArgument:
        pass
    try:
        parse_size(f"1 {c.token.keyword}")
    except BadArgument:
        raise c.unexpected() from None
    raise c.problem(f"{number.text} {c.token.text} is no size", at=number, expected="a whole number of bytes")


def record_format(c: Cursor) -> str | None:
    """``FORMAT json``, or ``None`` where there is none."""
    if not c.accept("FORMAT"):
        return None
    found = c.choose(FORMATS)
    c.advance()
    return found
