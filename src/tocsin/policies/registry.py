"""Name in the configuration → policy. A name or an option that is not known stops the program and names the nearest.

Balancing policies are imported when they are asked for: they bring numba and kernels, which somebody who only places
newcomers need not wait for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import Field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from tocsin.errors import ConfigError, nearest
from tocsin.policies.base import PlacementPolicy
from tocsin.policies.placement.least_loaded import LeastLoaded
from tocsin.policies.placement.nearest import Nearest
from tocsin.policies.placement.random import RandomBroker
from tocsin.policies.placement.round_robin import RoundRobin

if TYPE_CHECKING:
    from tocsin.policies.multistage.framework import Framework
    from tocsin.policies.multistage.plan import BalancingPolicy

P = TypeVar("P")

PLACEMENT: Mapping[str, type[PlacementPolicy]] = {
    "nearest": Nearest,
    "round_robin": RoundRobin,
    "random": RandomBroker,
    "least_loaded": LeastLoaded,
}

BALANCING: Mapping[str, str] = {
    "ldm": "Ldm",
    "sdm": "Sdm",
    "gsh": "Gsh",
    "xbal": "Xbal",
    "simsh": "Simsh",
    "gmove": "Gmove",
}


def placement_policy(name: str, options: Mapping[str, str] | None = None) -> PlacementPolicy:
    """The policy called ``name`` with its parameters as written; ConfigError says what is wrong and what there is."""
    kind = PLACEMENT[_known("placement policy", name, PLACEMENT)]
    return _made(f"placement policy {name}", kind, options or {})


def balancing_policy(name: str, options: Mapping[str, str] | None = None) -> BalancingPolicy:
    """Likewise for the policies that move subscribers."""
    found = BALANCING[_known("balancing policy", name, BALANCING)]
    kind = getattr(import_module(f"tocsin.policies.multistage.{name}"), found)
    return cast("BalancingPolicy", _made(f"balancing policy {name}", kind, options or {}))


def balancing_framework(
    migrate: BalancingPolicy | None, shuffle: BalancingPolicy | None, options: Mapping[str, str] | None = None
) -> Framework:
    """The framework that chooses between these two, with its thresholds and times as written."""
    from tocsin.policies.multistage.framework import Framework

    kinds = {f.name: type(f.default) for f in fields(Framework) if isinstance(f.default, float | bool)}
    _check_options("balancing", kinds, options or {})
    try:
        given: dict[str, Any] = {
            name: msgspec.convert(value, kinds[name], strict=False) for name, value in (options or {}).items()
        }
        return Framework(migrate, shuffle, **given)
    except ValueError as problem:
        raise ConfigError(f"balancing: {problem}") from None


def _known(what: str, name: str, there: Mapping[str, Any]) -> str:
    if name not in there:
        raise ConfigError(f"{what}: expected one of {', '.join(there)}, got {name!r}{nearest(name, there)}")
    return name


def _made(what: str, kind: type[P], options: Mapping[str, str]) -> P:
    known = fields(kind)  # type: ignore[arg-type]
    _check_options(what, [f.name for f in known], options)
    given = {f.name: _read(f, options[f.name]) for f in known if f.name in options}
    try:
        return msgspec.convert(given, kind, strict=False)
    except ValueError as problem:
        raise ConfigError(f"{what}: {problem}") from None


def _read(field: Field[Any], value: object) -> object:
    """A text with commas where several are meant: configuration and command line have texts only."""
    is_several = str(field.type).startswith("tuple")
    return [part.strip() for part in value.split(",")] if is_several and isinstance(value, str) else value


def _check_options(what: str, known: Collection[str], options: Mapping[str, str]) -> None:
    for option in options:
        if option not in known:
            have = ", ".join(known) if known else "none"
            raise ConfigError(f"{what}: options are {have}, got {option!r}{nearest(option, known)}")
