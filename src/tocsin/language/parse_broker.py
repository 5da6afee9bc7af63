"""CREATE and DROP BROKER, SUBSCRIBE, UNSUBSCRIBE, CHANGE SUBSCRIPTION."""

from __future__ import annotations

from urllib.parse import urlsplit

from tocsin.language.clauses import filled, if_exists, new_or_not, refuse_twice
from tocsin.language.cursor import Cursor
from tocsin.language.literals import literal
from tocsin.language.parse_channel import CHANNEL_NAME
from tocsin.language.statements import (
    ChangeSubscription,
    CreateBroker,
    DropBroker,
    Literal,
    Statement,
    Subscribe,
    Unsubscribe,
)
from tocsin.model.catalog import BrokerSpec

BROKER_NAME = "a broker name"
_ID = "the id of a subscription, in quotes"
_URL = "http://host:port or https://host:port, without user, query or fragment"


def create_broker(c: Cursor, *, or_replace: bool = False) -> Statement:
    c.expect("BROKER")
    lenient = new_or_not(c, or_replace)
    name_span = c.span()
    name = c.name(BROKER_NAME)
    c.expect("AT")
    return CreateBroker(BrokerSpec(name, _url(c)), lenient, or_replace, span=c.first_span, name_span=name_span)


def _url(c: Cursor) -> str:
    at = c.token
    url = c.string("a URL, in quotes")
    if not _is_broker_url(url):
        raise c.problem(f"'{url:.80}' is not the URL of a broker", at=at, expected=_URL)
    return url


def _is_broker_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = url.isascii() and url.isprintable() and " " not in url
    return usable and plain and not (parts.username or parts.password or parts.query or parts.fragment)


def drop_broker(c: Cursor) -> Statement:
    c.expect("BROKER")
    lenient = if_exists(c)
    name_span = c.span()
    return DropBroker(c.name(BROKER_NAME), lenient, span=c.first_span, name_span=name_span)


def subscribe(c: Cursor) -> Statement:
    c.expect("SUBSCRIBE", "TO")
    name_span = c.span()
    channel = c.name(CHANNEL_NAME)
    args = _arguments(c)
    c.expect("ON")
    return Subscribe(channel, args, c.name(BROKER_NAME), span=c.first_span, name_span=name_span)


_Args = tuple[tuple[str | None, Literal], ...]


def _arguments(c: Cursor) -> _Args:
    found: list[tuple[str | None, Literal]] = []
    if not c.accept_symbol("(") or c.accept_symbol(")"):
        return ()
    found.append(_argument(c, found))
    while c.accept_symbol(","):
        found.append(_argument(c, found))
    c.expect_symbol(")")
    return tuple(found)


def _argument(c: Cursor, before: list[tuple[str | None, Literal]]) -> tuple[str | None, Literal]:
    at, named = c.token, [name for name, _ in before if name]
    if c.peek().text != "=>":
        if named:
            raise c.problem("a value without a name after named ones", expected="name => value")
        return None, literal(c)
    name = c.name("a parameter name")
    refuse_twice(c, name, named, "parameter", at)
    c.expect_symbol("=>")
    return name, literal(c)


def unsubscribe(c: Cursor) -> Statement:
    c.expect("UNSUBSCRIBE")
    lenient = if_exists(c)
    name_span = c.span()
    subscription = filled(c, _ID)
    channel = c.name(CHANNEL_NAME) if c.accept("FROM") else None
    return Unsubscribe(subscription, channel, lenient, span=c.first_span, name_span=name_span)


def change_subscription(c: Cursor) -> Statement:
    c.expect("CHANGE", "SUBSCRIPTION")
    name_span = c.span()
    subscription = filled(c, _ID)
    c.expect("TO")
    return ChangeSubscription(subscription, c.name(BROKER_NAME), span=c.first_span, name_span=name_span)
