"""What a run may ask for. It is told field by field, before anything is drawn, also where the run is made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.errors import BadArgument

WEEK_S = 7 * 86_400
MOST_CELLS = 100_000_000  # of whatever a run keeps arrays of; each takes up to 50 bytes
MOST_SEEDS = 10_000

Ranges = Mapping[str, tuple[int, int]]


def check_within(settings: object, ranges: Ranges) -> None:
    """BadArgument names a field that is out of its range; of a tuple every number counts, and there is one."""
    for name, (least, most) in ranges.items():
        value = getattr(settings, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if not numbers or not all(least <= number <= most for number in numbers):
            raise BadArgument(name, f"{least:,} to {most:,}", value)


def check_rising(settings: object, *names: str) -> None:
    """Fields that are a lowest and a highest number."""
    for name in names:
        least, most = getattr(settings, name)
        if least > most:
            raise BadArgument(name, "the lower number first", (least, most))


def check_cells(**counts: int) -> None:
    """``counts`` are sizes by what they are the product of, with ``_x_`` for times."""
    for name, count in counts.items():
        if count > MOST_CELLS:
            raise BadArgument(name.replace("_x_", " × "), f"at most {MOST_CELLS:,}", count)


def check_seeds(seeds: int) -> int:
    if not 1 <= seeds <= MOST_SEEDS:
        raise BadArgument("seeds", f"a number from 1 to {MOST_SEEDS:,}", seeds)
    return seeds
