"""What one person's subscription brought to its client, held against what the cluster's results say it must be.

A subscription gets the results of its backend subscription behind the position with which it was acknowledged,
each once and in order. The results are those that the demonstration's own broker pulled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tocsin.demo.tally import Tally


@dataclass(slots=True)
class Heard:
    """``reports`` in the order in which they came."""

    user: str
    channel: str
    backend: int | None = None
    position: str = ""
    reports: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    out_of_order: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """What the people with connections have to say together."""

    people: int = 0
    of_people: int = 0  # who move through the city
    brokers: int = 0
    subscriptions: int = 0
    notifications: int = 0
    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None


@dataclass(slots=True)
class Compared:
    missing: int = 0
    doubled: int = 0
    out_of_order: int = 0
    problems: list[str] = field(default_factory=list)


def compare(heard: Iterable[Heard], tallies: Mapping[str, Tally]) -> Compared:
    """All subscriptions of people with connections; problems are sentences."""
    owed = {name: _by_backend(tally) for name, tally in tallies.items()}
    found = Compared()
    for one in heard:
        for problem in _compare(one, owed[one.channel].get(one.backend, {}), found):
            found.problems.append(f"{one.user}, {one.channel}: {problem}")
    return found


def _compare(one: Heard, results: Mapping[str, str], found: Compared) -> Iterator[str]:
    due = {report for report, position in results.items() if position > one.position}
    came = set(one.reports)
    missing, doubled = due - came, len(one.reports) - len(came)
    found.missing += len(missing)
    found.doubled += doubled
    found.out_of_order += one.out_of_order
    if one.problem:
        yield one.problem
    elif one.backend is None:
        yield "subscribing was not answered"
    if missing:
        yield f"{len(missing):,} notifications are missing at the client, such as {min(missing)}"
    if doubled:
        yield f"{doubled:,} notifications came to the client more than once"
    if one.out_of_order:
        yield f"{one.out_of_order:,} notifications came to the client out of order"
    if strange := came - due:
        yield f"{len(strange):,} notifications at the client should not be, such as {min(strange)}"
    yield from one.gaps


def _by_backend(tally: Tally) -> dict[int | None, dict[str, str]]:
    """For each backend subscription its reports and their positions."""
    found: dict[int | None, dict[str, str]] = {}
    for (report, backend), position in tally.positions.items():
        found.setdefault(backend, {})[report] = position
    return found
