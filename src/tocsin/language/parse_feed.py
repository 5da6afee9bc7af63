"""CREATE, DROP, PAUSE and RESUME FEED.

The source's own settings become the options ``path``, ``format``, ``topic`` and ``servers``; WITH adds others,
which the source validates. A directory holds JSON lines unless FORMAT says otherwise.
"""

from __future__ import annotations

import re

from tocsin.language.clauses import filled, if_exists, if_not_exists, listed, record_format
from tocsin.language.cursor import Cursor
from tocsin.language.parse_dataset import DATASET_NAME
from tocsin.language.statements import CreateFeed, DropFeed, PauseFeed, ResumeFeed, Statement
from tocsin.model.catalog import FeedSpec

FEED_NAME = "a feed name"
OWN_OPTIONS = ("path", "format", "topic", "servers")
Options = tuple[tuple[str, str], ...]
_SERVER = r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}"
_SERVERS = re.compile(rf"{_SERVER}(?:,{_SERVER})*")


def create_feed(c: Cursor) -> Statement:
    c.expect("FEED")
    lenient = if_not_exists(c)
    name_span = c.span()
    name = c.name(FEED_NAME)
    c.expect("INTO")
    dataset = c.name(DATASET_NAME)
    kind, own = _source(c) if c.accept("FROM") else ("http", ())
    added = _with_options(c) if c.accept("WITH") else ()
    spec = FeedSpec(name, dataset, kind, own + added)
    return CreateFeed(spec, lenient, span=c.first_span, name_span=name_span)


def _source(c: Cursor) -> tuple[str, Options]:
    read = c.choose({"HTTP": _http, "DIRECTORY": _directory, "KAFKA": _kafka})
    kind = c.advance().text.lower()
    return kind, read(c)


def _http(_: Cursor) -> Options:
    return ()


def _directory(c: Cursor) -> Options:
    path = filled(c, "the path of a directory, in quotes")
    return ("path", path), ("format", record_format(c) or "json")


def _kafka(c: Cursor) -> Options:
    c.expect("TOPIC")
    topic = filled(c, "the name of a topic, in quotes")
    c.expect("AT")
    at = c.token
    servers = c.string("the servers, such as 'host:9092'").replace(" ", "")
    if not _SERVERS.fullmatch(servers):
        raise c.problem(f"'{servers:.80}' names no servers", at=at, expected="'host:port', or several with commas")
    return ("topic", topic), ("servers", servers)


def _with_options(c: Cursor) -> Options:
    seen: dict[str, str] = {}
    listed(c, lambda c: _option(c, seen))
    return tuple(seen.items())


def _option(c: Cursor, seen: dict[str, str]) -> None:
    at = c.token
    key = filled(c, "the name of an option, in quotes")
    if key in OWN_OPTIONS:
        raise c.problem(f"option '{key}' has its own place", at=at, expected="it after FROM, not in WITH")
    if key in seen:
        raise c.problem(f"option '{key}' is given twice", at=at, expected="different options")
    c.expect_symbol("=")
    seen[key] = c.string("the value of the option, in quotes")


def drop_feed(c: Cursor) -> Statement:
    c.expect("FEED")
    lenient = if_exists(c)
    name_span = c.span()
    return DropFeed(c.name(FEED_NAME), lenient, span=c.first_span, name_span=name_span)


def pause_feed(c: Cursor) -> Statement:
    c.expect("FEED")
    name_span = c.span()
    return PauseFeed(c.name(FEED_NAME), span=c.first_span, name_span=name_span)


def resume_feed(c: Cursor) -> Statement:
    c.expect("FEED")
    name_span = c.span()
    return ResumeFeed(c.name(FEED_NAME), span=c.first_span, name_span=name_span)
