"""What may be published: a JSON value that every client can decode, since it goes out to others as it came."""

from __future__ import annotations

import msgspec

from tocsin.errors import BadArgument

_EXPECTED = "one JSON value in UTF-8, its integers of at most 4300 digits and its other numbers within a double"
_decode = msgspec.json.Decoder().decode


def check_payload(payload: bytes) -> None:
    """BadArgument saying where it is wrong. Decoding it is cheaper than any search for what could be."""
    try:
        _decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadArgument("payload", _EXPECTED, because=str(problem)) from None
