"""Whether a principal may follow a channel with these arguments, where its grants pin parameters to claims."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.broker.upstream.cluster import Arguments, Parameter
from tocsin.errors import BadArgument, Refused
from tocsin.model.types import SqlType

_DECIMAL = re.compile(r"DECIMAL\((\d+), *(\d+)\)")
_ARRAY = re.compile(r"ARRAY<(.*)>")


def check_pins(
    channel: str, parameters: Sequence[Parameter], arguments: Arguments, pins: Sequence[Mapping[str, Any]]
) -> None:
    """Refused unless ``arguments`` fit one of ``pins``, each of which says what some parameters must be."""
    given = _bound(parameters, arguments)
    if not any(_fits(pin, parameters, given) for pin in pins):
        wanted = ", ".join(sorted({name for pin in pins for name in pin}))
        raise Refused(f"the token allows {channel!r} only with its own values of {wanted}")


def _bound(parameters: Sequence[Parameter], arguments: Arguments) -> dict[str, Any]:
    """Arguments by the parameters' names in lower case."""
    if isinstance(arguments, Mapping):
        return {name.lower(): value for name, value in arguments.items()}
    if len(arguments) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise BadArgument("arguments", f"{len(parameters)} ({names or 'none'})", len(arguments))
    return {p.name.lower(): value for p, value in zip(parameters, arguments, strict=True)}


def _fits(pin: Mapping[str, Any], parameters: Sequence[Parameter], given: Mapping[str, Any]) -> bool:
    types = {p.name.lower(): sql_type(p.type) for p in parameters}
    return all(_equal(types.get(name.lower()), given.get(name.lower()), must) for name, must in pin.items())


def _equal(kind: SqlType | None, value: Any, must: Any) -> bool:
    if kind is None or value is None:
        return False
    try:
        return bool(kind.parse(value, "argument") == kind.parse(must, "claim"))
    except BadArgument:
        return False


def sql_type(text: str) -> SqlType:
    """The type that the cluster wrote as ``text``."""
    if array := _ARRAY.fullmatch(text):
        inner = sql_type(array[1])
        return SqlType(inner.name, inner.precision, inner.scale, is_array=True)
    if decimal := _DECIMAL.fullmatch(text):
        return SqlType("DECIMAL", int(decimal[1]), int(decimal[2]))
    return SqlType(text)
