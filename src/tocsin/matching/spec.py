"""Which predicates an index answers: a conjunction over probe columns of a record and parameters.

Every predicate is false when one of its values is NULL. ``probe`` names a column of the probed
table, ``param`` a parameter of the channel. Comparisons follow Spark: NaN equals NaN and is greater
than every other number, -0.0 equals 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tocsin.model.types import SqlType


class Op(StrEnum):
    """How the record's value compares with the parameter: ``record op parameter``."""

    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class Metric(StrEnum):
    PLANAR = "planar"  # sqrt(dx*dx + dy*dy)
    SPHERE = "sphere"  # great-circle metres from latitude and longitude in degrees


@dataclass(frozen=True, slots=True)
class Equal:
    """``record.probe = :param``"""

    probe: str
    param: str

    def __str__(self) -> str:
        return f"{self.probe} = :{self.param}"


@dataclass(frozen=True, slots=True)
class Member:
    """``record.probe IN (:param)``, the parameter an array."""

    probe: str
    param: str

    def __str__(self) -> str:
        return f"{self.probe} IN (:{self.param})"


@dataclass(frozen=True, slots=True)
class Compare:
    """``record.probe op :param`` over numbers, timestamps, dates."""

    probe: str
    op: Op
    param: str

    def __str__(self) -> str:
        return f"{self.probe} {self.op} :{self.param}"


@dataclass(frozen=True, slots=True)
class HasWord:
    """``has_word(record.probe, :param)``: the parameter is one of the text's words, ignoring case.

    Words are maximal runs of letters and digits; see ``tocsin.matching.words``.
    """

    probe: str
    param: str

    def __str__(self) -> str:
        return f"has_word({self.probe}, :{self.param})"


@dataclass(frozen=True, slots=True)
class Near:
    """``distance(record.x, record.y, :x, :y) < radius`` (``<=`` when ``inclusive``).

    Exactly one of ``radius_param``, ``radius_probe``, ``radius_const`` is given. For
    ``Metric.SPHERE`` x is the latitude and y the longitude, as in ``distance_m(lat, lon, lat, lon)``.
    """

    metric: Metric
    x_probe: str
    y_probe: str
    x_param: str
    y_param: str
    inclusive: bool
    radius_param: str | None = None
    radius_probe: str | None = None
    radius_const: float | None = None

    def __str__(self) -> str:
        name = "distance" if self.metric is Metric.PLANAR else "distance_m"
        radius = f":{self.radius_param}" if self.radius_param else self.radius_probe or self.radius_const
        places = f"{self.x_probe}, {self.y_probe}, :{self.x_param}, :{self.y_param}"
        return f"{name}({places}) {'<=' if self.inclusive else '<'} {radius}"


Predicate = Equal | Member | Compare | HasWord | Near


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """A conjunction of predicates, the types of what they touch, and the grid's base cell."""

    predicates: tuple[Predicate, ...]
    probe_types: tuple[tuple[str, SqlType], ...]
    param_types: tuple[tuple[str, SqlType], ...]
    cell: float = 500.0
