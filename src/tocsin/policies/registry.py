"""Name in the configuration → policy. A name or an option that is not known stops the program and names the nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import msgspec

from tocsin.errors import ConfigError, nearest
from tocsin.policies.base import PlacementPolicy
from tocsin.policies.placement.least_loaded import LeastLoaded
from tocsin.policies.placement.nearest import Nearest
from tocsin.policies.placement.random import RandomBroker
from tocsin.policies.placement.round_robin import RoundRobin

PLACEMENT: Mapping[str, type[PlacementPolicy]] = {
    "nearest": Nearest,
    "round_robin": RoundRobin,
    "random": RandomBroker,
    "least_loaded": LeastLoaded,
}


def placement_policy(name: str, options: Mapping[str, str] | None = None) -> PlacementPolicy:
    """The policy called ``name`` with its parameters as written; ConfigError says what is wrong and what there is."""
    kind = PLACEMENT.get(name)
    if kind is None:
        raise ConfigError(
            f"placement policy: expected one of {', '.join(PLACEMENT)}, got {name!r}{nearest(name, PLACEMENT)}"
        )
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    for option in options or {}:
        if option not in known:
            have = ", ".join(known) if known else "none"
            raise ConfigError(f"placement policy {name}: options are {have}, got {option!r}{nearest(option, known)}")
    try:
        return msgspec.convert(dict(options or {}), kind, strict=False)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"placement policy {name}: {problem}") from None
