"""What may be published: a JSON value that every client can decode, since it goes out to others as it came."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tocsin.errors import BadArgument

MAX_DEPTH = 100
"""How deep values may be nested. A client decodes them on top of its own stack, of which Python has 1000 frames."""
_EXPECTED = (
    "one JSON value in UTF-8, its integers of at most 4300 digits, its other numbers within a double, "
    f"its values nested at most {MAX_DEPTH} deep"
)
_decode = msgspec.json.Decoder().decode


def check_payload(payload: bytes) -> None:
    """BadArgument saying where it is wrong. Decoding it is cheaper than any search for what could be."""
    try:
        value = _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadArgument("payload", _EXPECTED, because=str(problem)) from None
    if payload.count(b"[") + payload.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise BadArgument("payload", _EXPECTED, because=f"it is nested more than {MAX_DEPTH} deep")


def _is_deep(value: Any) -> bool:
    """Looks level by level, for whatever follows the nesting is nested as deep itself."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, dict | list)]
    return bool(level)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
