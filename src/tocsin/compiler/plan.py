"""What compiling a channel gives: the contract between the compiler and who executes.

The SQL of a plan reads *relations*: views that the executor provides for one execution. Their names
are fixed here, so compilation knows nothing of where the rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tocsin.matching.spec import IndexSpec

SUBSCRIPTION = "__bs"  # column: number of the backend subscription
SEQUENCE = "__seq"  # column: sequence number of the driving record, 0 where rows were grouped
ORDINAL = "__ord"  # column: rank among the rows of one (subscription, sequence)
BEFORE = "__before_"  # prefix of before-image columns
PARAMETER = "p_"  # prefix of parameter columns in the subscription relations


class View(StrEnum):
    """Which rows of a dataset a relation shows. All carry the dataset's columns and ``__seq``."""

    NEW = "new"  # appended in the window, or the last version in it of each key; no deleted keys
    NOW = "now"  # everything as of the window's end
    OLD = "old"  # NOW without NEW: unchanged in the window
    NEW_BEFORE = "new_before"  # NEW with ``__before_<column>``s: the version before the window, or NULLs
    NOW_BEFORE = "now_before"  # NOW likewise; an unchanged record is its own before-image


@dataclass(frozen=True, slots=True)
class Relation:
    """A view named ``name`` in the SQL."""

    name: str
    dataset: str
    view: View


class SubscriptionShape(StrEnum):
    """How the distinct parameter sets are laid out for the join."""

    FLAT = "flat"  # one row a set: __bs, p_<param>...
    GRID = "grid"  # one row a cell and equality keys, see Grid


@dataclass(frozen=True, slots=True)
class Grid:
    """How a GRID relation is keyed: one distance predicate, some equality parameters.

    Its columns: ``k_<param>`` for each of ``equal_params``, ``__level``, ``__cx``, ``__cy`` (and
    ``__cz`` on the sphere), and ``subs``, an array of structs of ``__bs`` and every ``p_<param>``.
    The cells are those of ``tocsin.matching.grid``.
    """

    sphere: bool
    x_param: str
    y_param: str
    radius_param: str | None
    radius_const: float | None
    equal_params: tuple[str, ...]
    cell: float


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """One query for all subscriptions.

    ``sql`` yields ``__bs, __seq, __ord`` and the channel's ``columns``. ``subscriptions`` names the
    relation that holds the distinct parameter sets in ``shape``. ``{now}`` in the text stands for
    the window's recorded time as a timestamp literal.
    """

    sql: str
    subscriptions: str
    shape: SubscriptionShape
    grid: Grid | None
    is_lateral: bool


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Candidates without parameters, to be matched by an index.

    ``sql`` yields ``__seq``, one column for each probe named in ``spec`` and the channel's columns.
    Where ``is_simple``, the same is said as parts over the one relation ``relation`` with no join, so
    that many channels share a scan: ``filter_sql`` (or ``None``), ``probes`` and ``outputs`` as
    (name, SQL expression) pairs, columns unqualified. ``conditions`` are the predicates
    over the query's columns, for people.
    """

    sql: str
    spec: IndexSpec
    conditions: tuple[str, ...]
    is_simple: bool
    relation: str
    filter_sql: str | None
    probes: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CompiledChannel:
    """Everything an executor needs. ``index`` is ``None`` where only the join answers."""

    name: str
    columns: tuple[str, ...]
    drivers: tuple[str, ...]  # datasets whose new records make executions, in order of appearance
    datasets: frozenset[str]  # every dataset it reads
    relations: tuple[Relation, ...]
    join: JoinPlan
    index: IndexPlan | None
    why: str  # one sentence: why this strategy
    radius_params: tuple[str, ...] = ()  # parameters that are radii; values above max_radius are refused

    @property
    def strategy(self) -> str:
        return "index" if self.index else "join"
