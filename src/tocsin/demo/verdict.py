"""Was everything received exactly once? The problems found, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tocsin.demo.counters import Counted
from tocsin.demo.expected import Foretold
from tocsin.demo.tally import Tally


def problems_of(
    channel: str, tally: Tally, counted: Counted, foretold: Foretold | None, notices: Mapping[str, int]
) -> Iterator[str]:
    """What is wrong with what ``channel`` delivered; nothing if all is well."""
    if tally.doubled:
        yield f"{channel}: {tally.doubled:,} matches came more than once"
    if tally.matches != counted.matched:
        yield f"{channel}: {tally.matches:,} matches came, and the cluster found {counted.matched:,}"
    if tally.rows != counted.rows:
        yield f"{channel}: {tally.rows:,} result rows came, and the cluster stored {counted.rows:,}"
    if tally.rows and not notices.get(channel):
        yield f"{channel}: results came, and the broker was told of none"
    yield from (f"{channel}: {gap}" for gap in tally.gaps)
    if foretold is not None:
        yield from _compared(channel, tally, foretold)


def _compared(channel: str, tally: Tally, foretold: Foretold) -> Iterator[str]:
    missing = foretold.certain - tally.pairs
    if missing:
        report, backend = min(missing)
        yield f"{channel}: {len(missing):,} matches are missing, such as {report} for subscription {backend}"
    strange = tally.pairs - foretold.certain - foretold.possible
    if strange:
        report, backend = min(strange)
        yield f"{channel}: {len(strange):,} matches should not be, such as {report} for subscription {backend}"
