"""CREATE, DROP, PAUSE, RESUME and EXPLAIN CHANNEL.

A periodic channel states its PERIOD; a continuous one runs as data arrives and has none.
"""

from __future__ import annotations

from tocsin.errors import Span
from tocsin.language.clauses import duration, if_exists, new_or_not, refuse_twice, retention, sql_type
from tocsin.language.cursor import Cursor
from tocsin.language.query import query_text
from tocsin.language.statements import (
    CreateChannel,
    DropChannel,
    ExplainChannel,
    PauseChannel,
    ResumeChannel,
    Statement,
)
from tocsin.model.catalog import ChannelSpec, Parameter, Retention

CHANNEL_NAME = "a channel name"


def create_channel(c: Cursor, *, or_replace: bool = False) -> Statement:
    modes = _modes(c)
    c.expect("CHANNEL")
    lenient = new_or_not(c, or_replace)
    name_span = c.span()
    name = c.name(CHANNEL_NAME)
    parameters = _parameters(c)
    period, retain = _clauses(c, continuous="CONTINUOUS" in modes)
    c.expect("AS")
    query_span = c.span()
    spec = ChannelSpec(name, parameters, query_text(c), "CONTINUOUS" in modes, "PUSH" in modes, period, retain)
    return CreateChannel(spec, lenient, or_replace, query_span=query_span, span=c.first_span, name_span=name_span)


def _modes(c: Cursor) -> set[str]:
    """CONTINUOUS and PUSH, each at most once, in either order."""
    found: set[str] = set()
    while True:
        left = [word for word in ("CONTINUOUS", "PUSH") if word not in found]
        word = next((word for word in left if c.accept(word)), None)
        if word is None:
            return found
        found.add(word)


def _parameters(c: Cursor) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    if not c.accept_symbol("(") or c.accept_symbol(")"):
        return ()
    found.append(_parameter(c, found))
    while c.accept_symbol(","):
        found.append(_parameter(c, found))
    c.expect_symbol(")")
    return tuple(found)


def _parameter(c: Cursor, found: list[Parameter]) -> Parameter:
    at = c.token
    name = c.name("a parameter name")
    refuse_twice(c, name, [p.name for p in found], "parameter", at)
    return Parameter(name, sql_type(c))


def _clauses(c: Cursor, *, continuous: bool) -> tuple[float | None, Retention]:
    """PERIOD and RETAIN in either order; whether PERIOD must, may or must not be there."""
    period, retain = None, None
    while True:
        if continuous and c.token.keyword == "PERIOD":
            raise c.problem("a CONTINUOUS channel runs as data arrives", expected="no PERIOD")
        if not continuous and period is None and c.accept("PERIOD"):
            period = duration(c, "a duration such as '10s'")
        elif retain is None and c.accept("RETAIN"):
            retain = retention(c)
        else:
            break
    if not continuous and period is None and c.token.keyword == "AS":
        raise c.problem("this channel has no PERIOD", expected="PERIOD '10s', or CREATE CONTINUOUS CHANNEL")
    return period, retain or Retention()


def _named(c: Cursor) -> tuple[str, Span]:
    span = c.span()
    return c.name(CHANNEL_NAME), span


def drop_channel(c: Cursor) -> Statement:
    c.expect("CHANNEL")
    lenient = if_exists(c)
    name, span = _named(c)
    return DropChannel(name, lenient, c.accept("CASCADE"), span=c.first_span, name_span=span)


def pause_channel(c: Cursor) -> Statement:
    c.expect("CHANNEL")
    name, span = _named(c)
    return PauseChannel(name, span=c.first_span, name_span=span)


def resume_channel(c: Cursor) -> Statement:
    c.expect("CHANNEL")
    name, span = _named(c)
    return ResumeChannel(name, span=c.first_span, name_span=span)


def explain_channel(c: Cursor) -> Statement:
    c.expect("EXPLAIN", "CHANNEL")
    name, span = _named(c)
    return ExplainChannel(name, span=c.first_span, name_span=span)
