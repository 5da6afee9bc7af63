"""Arguments of a subscription: checked against the channel's parameters, with one canonical form.

Two subscriptions are identical when their canonical forms are: a JSON array of the values in the order
of the parameters. That text is the key by which subscriptions are shared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.errors import BadArgument, nearest
from tocsin.model.catalog import ChannelSpec

MAX_KEY_CHARS = 64 * 1024
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def bind_arguments(spec: ChannelSpec, arguments: Mapping[str, Any] | Sequence[Any]) -> list[Any]:
    """Typed values in the order of the parameters; positional or by name."""
    names = [p.name for p in spec.parameters]
    if isinstance(arguments, Mapping):
        given = _by_name(names, arguments)
    else:
        if len(arguments) != len(names):
            raise BadArgument("arguments", f"{len(names)} ({', '.join(names) or 'none'})", len(arguments))
        given = list(arguments)
    return [p.type.parse(value, p.name) for p, value in zip(spec.parameters, given, strict=True)]


def _by_name(names: Sequence[str], arguments: Mapping[str, Any]) -> list[Any]:
    folded = {str(name).lower(): value for name, value in arguments.items()}
    known = {name.lower() for name in names}
    for name in arguments:
        if str(name).lower() not in known:
            hint = nearest(str(name), names)
            raise BadArgument("arguments", f"the parameters {', '.join(names) or '(none)'}{hint}", name)
    missing = [name for name in names if name.lower() not in folded]
    if missing:
        raise BadArgument("arguments", f"a value for {', '.join(missing)}", sorted(arguments))
    return [folded[name.lower()] for name in names]


def canonical_key(spec: ChannelSpec, values: Sequence[Any]) -> str:
    """The shared form of typed values."""
    plain = [p.type.to_json(v) for p, v in zip(spec.parameters, values, strict=True)]
    key = _encode(plain)
    if len(key) > MAX_KEY_CHARS:
        raise BadArgument("arguments", f"at most {MAX_KEY_CHARS:,} characters in all", f"{len(key):,} characters")
    return key


def values_of(spec: ChannelSpec, key: str) -> list[Any]:
    """Typed values back from a canonical key."""
    return [p.type.parse(v, p.name) for p, v in zip(spec.parameters, json.loads(key), strict=True)]
