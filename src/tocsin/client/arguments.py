"""What the application hands over, looked at before anything is held or sent.

A broker ends the connection at a message that is none of the protocol, and a subscription is named at every login. So
what cannot be said is refused here, to whoever called: it must not cost the session.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from tocsin.client.wishes import default_id
from tocsin.errors import BadArgument
from tocsin.protocol.messages import Position, Wanted
from tocsin.protocol.targets import Target

T = TypeVar("T")
_UNREADABLE = (TypeError, ValueError, RecursionError)  # msgspec's own errors are ValueErrors


def as_json(name: str, value: Any) -> msgspec.Raw:
    """BadArgument where a value has no JSON form. NaN and infinity have none, though msgspec writes null for them."""
    try:
        raw = msgspec.json.encode(value)
        is_complete = b"null" not in raw or _is_finite(msgspec.to_builtins(value, enc_hook=lambda _: None))
    except _UNREADABLE as problem:
        raise BadArgument(name, "a value that JSON can hold", because=str(problem)) from None
    if not is_complete:
        raise BadArgument(name, "a value that JSON can hold", because="NaN and infinity are none")
    return msgspec.Raw(raw)


def wanted(id: str | None, target: Target, position: str | None) -> Wanted:
    """A subscription as a broker will read it, whatever becomes of ``target`` later; BadArgument where it could not."""
    asked = _read(Wanted, "subscription", Wanted("" if id is None else id, target, position))
    return asked if asked.id else Wanted(default_id(asked.target), asked.target, asked.position)


def positions_of(given: Mapping[str, str] | None) -> dict[str, str]:
    return _read(dict[str, Position], "positions", dict(given or {}))


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadArgument(name, "a text", value)
    return value


def rows(records: Iterable[Any]) -> list[msgspec.Raw]:
    """One record alone is none of several, though its names could be iterated over."""
    if not isinstance(records, Iterable) or isinstance(records, str | bytes | Mapping):
        raise BadArgument("records", "a list of records", records)
    return [as_json("record", record) for record in records]


def _read(kind: type[T], name: str, value: Any) -> T:
    try:
        return msgspec.json.decode(as_json(name, value), type=kind)
    except _UNREADABLE as problem:
        raise BadArgument(name, "what a broker can read", because=str(problem)) from None


def _is_finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list() | tuple():
            return all(map(_is_finite, value))
    return True
