"""How an index answers a conjunction.

Every ``Equal`` goes into the key of a hash table, and with it at most one predicate that spreads a
subscription over several keys, in this order of preference: a ``Near`` whose radius the subscription
knows (its cells), a ``Near`` whose radius the record brings, a ``HasWord`` (its word), a ``Member``
(its elements). Where nothing is spread, the entries of a key are sorted by each ``Compare``, and a
record reads the shortest of the ranges. What is not decided that way is a residual: a test of each
candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin.errors import BadArgument, InvalidQuery
from tocsin.matching.columns import common_type, is_wide
from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Near, Predicate
from tocsin.model.types import SqlType

_UNORDERED = ("STRING", "BOOLEAN")
_NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True, slots=True)
class Access:
    """Positions in ``IndexSpec.predicates``."""

    equals: tuple[int, ...]
    spread: int | None
    ranges: tuple[int, ...]
    residuals: tuple[int, ...]


def choose_access(spec: IndexSpec) -> Access:
    numbered = list(enumerate(spec.predicates))
    equals = tuple(i for i, p in numbered if isinstance(p, Equal))
    spread = next((i for wanted in _PREFERENCE for i, p in numbered if wanted(p)), None)
    ranges = tuple(i for i, p in numbered if isinstance(p, Compare) and spread is None)
    decided = {*equals, *_decided(spec, spread, ranges)}
    return Access(equals, spread, ranges, tuple(i for i, _ in numbered if i not in decided))


def _decided(spec: IndexSpec, spread: int | None, ranges: tuple[int, ...]) -> tuple[int, ...]:
    """Of the spread and the ranges, those that leave nothing to test."""
    if spread is not None:
        chosen = spec.predicates[spread]
        return () if isinstance(chosen, Near) and chosen.radius_probe else (spread,)
    return ranges if len(ranges) == 1 and not is_wide(meeting_type(spec, spec.predicates[ranges[0]])) else ()


_PREFERENCE: tuple[Callable[[Predicate], bool], ...] = (
    lambda p: isinstance(p, Near) and p.radius_probe is None,
    lambda p: isinstance(p, Near),
    lambda p: isinstance(p, HasWord),
    lambda p: isinstance(p, Member),
)


def meeting_type(spec: IndexSpec, predicate: Predicate) -> SqlType:
    """The type in which the record's value and the parameter of a one-column predicate are compared."""
    assert not isinstance(predicate, Near)
    return common_type(_type(spec.probe_types, predicate.probe), _type(spec.param_types, predicate.param))


def check_spec(spec: IndexSpec) -> None:
    """Refuse, with InvalidQuery or BadArgument, what no index can answer."""
    if not spec.cell > 0:
        raise BadArgument("cell", "a size above 0", spec.cell)
    for predicate in spec.predicates:
        if isinstance(predicate, Near):
            _check_near(spec, predicate)
        else:
            _check_column(spec, predicate)


def _check_column(spec: IndexSpec, predicate: Equal | Member | Compare | HasWord) -> None:
    probe, param = _type(spec.probe_types, predicate.probe), _type(spec.param_types, predicate.param)
    if probe.is_array or param.is_array != isinstance(predicate, Member):
        raise InvalidQuery(f"{predicate} cannot compare {probe} with {param}")
    kind = meeting_type(spec, predicate)
    if isinstance(predicate, Compare) and kind.name in _UNORDERED:
        raise InvalidQuery(f"{predicate} compares {kind}", expected="numbers, timestamps or dates")
    if isinstance(predicate, HasWord) and kind.name != "STRING":
        raise InvalidQuery(f"{predicate} looks for words in {kind}", expected="STRING")


def _check_near(spec: IndexSpec, near: Near) -> None:
    radii = (near.radius_param, near.radius_probe, near.radius_const)
    if sum(r is not None for r in radii) != 1:
        raise InvalidQuery(f"{near} has {sum(r is not None for r in radii)} radii", expected="exactly one")
    probes = [n for n in (near.x_probe, near.y_probe, near.radius_probe) if n is not None]
    params = [n for n in (near.x_param, near.y_param, near.radius_param) if n is not None]
    kinds = [_type(spec.probe_types, n) for n in probes] + [_type(spec.param_types, n) for n in params]
    if any(kind.name not in _NUMBERS or kind.is_array for kind in kinds):
        raise InvalidQuery(f"{near} takes {', '.join(map(str, kinds))}", expected="numbers")


def _type(known: tuple[tuple[str, SqlType], ...], name: str) -> SqlType:
    for candidate, kind in known:
        if candidate == name:
            return kind
    raise BadArgument("index", f"a declared type for {name!r}", [n for n, _ in known])
