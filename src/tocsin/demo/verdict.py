"""Was everything received exactly once? The problems found, as sentences.

What came is held against what the cluster told the broker that it has for it, subscription by subscription. The
cluster's counters are of everybody who is subscribed, visitors of the dashboard among them: nobody can have got more
than they say. Only where a notice had too much to list they must be met.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.demo.counters import Counted
from tocsin.demo.expected import Foretold
from tocsin.demo.tally import Tally
from tocsin.demo.told import Told


def problems_of(channel: str, tally: Tally, counted: Counted, foretold: Foretold | None, told: Told) -> Iterator[str]:
    """What is wrong with what ``channel`` delivered; nothing if all is well."""
    if tally.doubled:
        yield f"{channel}: {tally.doubled:,} matches came more than once"
    yield from _counted(channel, tally, counted, must_be_met=not told.is_whole)
    if told.is_whole:
        yield from _owed(channel, tally, told)
    yield from (f"{channel}: {gap}" for gap in tally.gaps)
    if foretold is not None:
        yield from _compared(channel, tally, foretold)


def _counted(channel: str, tally: Tally, counted: Counted, *, must_be_met: bool) -> Iterator[str]:
    if tally.matches > counted.matched or (must_be_met and tally.matches < counted.matched):
        yield f"{channel}: {tally.matches:,} matches came, and the cluster found {counted.matched:,}"
    if tally.rows > counted.rows or (must_be_met and tally.rows < counted.rows):
        yield f"{channel}: {tally.rows:,} result rows came, and the cluster stored {counted.rows:,}"


def _owed(channel: str, tally: Tally, told: Told) -> Iterator[str]:
    if lost := told.owed - tally.by_backend:
        yield (
            f"{channel}: {lost.total():,} matches did not come of which the broker was told, "
            f"such as {lost[min(lost)]:,} for subscription {min(lost)}"
        )
    if untold := tally.by_backend - told.owed:
        yield (
            f"{channel}: {untold.total():,} matches came of which the broker was not told, "
            f"such as {untold[min(untold)]:,} for subscription {min(untold)}"
        )


def _compared(channel: str, tally: Tally, foretold: Foretold) -> Iterator[str]:
    missing = foretold.certain - tally.pairs
    if missing:
        report, backend = min(missing)
        yield f"{channel}: {len(missing):,} matches are missing, such as {report} for subscription {backend}"
    strange = tally.pairs - foretold.certain - foretold.possible
    if strange:
        report, backend = min(strange)
        yield f"{channel}: {len(strange):,} matches should not be, such as {report} for subscription {backend}"
