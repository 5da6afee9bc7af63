"""Recognising distance predicates: ``distance(x1, y1, x2, y2) < radius``, in any order of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.functions import our_function
from tocsin.compiler.trees import tables_of

_FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True, slots=True)
class Within:
    """One place is within ``radius`` of another."""

    sphere: bool
    one: tuple[exp.Expr, exp.Expr]
    other: tuple[exp.Expr, exp.Expr]
    radius: exp.Expr
    inclusive: bool

    def turned(self) -> Within:
        return Within(self.sphere, self.other, self.one, self.radius, self.inclusive)

    @property
    def radius_const(self) -> float | None:
        """The radius where it is a number in the text."""
        return constant(self.radius)


def constant(node: exp.Expr) -> float | None:
    """The value of a number, with or without a cast around it that keeps the value, such as ``100L`` or ``1.5D``."""
    node = node.unnest()
    kind = node.to.this if isinstance(node, exp.Cast) else None
    number = node.this.unnest() if isinstance(node, exp.Cast) else node
    if not isinstance(number, exp.Literal) or number.is_string:
        return None
    is_kept = kind in (None, exp.DType.DOUBLE) or (kind in exp.DataType.INTEGER_TYPES and number.is_int)
    return float(number.name) if is_kept else None


def within_of(condition: exp.Expr) -> Within | None:
    """The predicate that a condition states, if it is one."""
    kind = type(condition)
    if kind not in _FLIPPED:
        return None
    left, right = condition.this.unnest(), condition.expression.unnest()
    if our_function(right) in ("distance", "distance_m"):
        left, right, kind = right, left, _FLIPPED[kind]
    name = our_function(left)
    if name not in ("distance", "distance_m") or kind not in (exp.LT, exp.LTE):
        return None
    x1, y1, x2, y2 = left.expressions
    return Within(name == "distance_m", (x1, y1), (x2, y2), right, kind is exp.LTE)


def tables_of_place(place: tuple[exp.Expr, exp.Expr]) -> set[str]:
    return tables_of(place[0]) | tables_of(place[1])
