"""Finding one of several things by its name, which ignores case as it does in statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from tocsin.errors import NotFound


class Named(Protocol):
    @property
    def name(self) -> str: ...


class NameAndType(msgspec.Struct, frozen=True):
    name: str
    type: str


T = TypeVar("T", bound=Named)


def find(kind: str, name: str, things: Sequence[T]) -> T:
    """The thing called ``name``, or NotFound with the nearest name."""
    wanted = name.casefold()
    for thing in things:
        if thing.name.casefold() == wanted:
            return thing
    raise NotFound(kind, name, [thing.name for thing in things])


def pairs(declared: Sequence[tuple[str, str]]) -> list[NameAndType]:
    return [NameAndType(name, sql_type) for name, sql_type in declared]
