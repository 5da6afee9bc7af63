"""Durations, sizes and counts as people write them: ``30s``, ``1h 30m``, ``64 MB``, ``1 row``.

A duration is one or more number-and-unit pairs, summed; a size is one. A bare number is refused in
both, since nobody can tell what it counts. Sizes are decimal (``kB``, ``MB``) or binary (``KiB``,
``MiB``). Printing gives back a text that parses to the same value.
"""

from __future__ import annotations

import math
import re

from tocsin.errors import BadArgument

_MILLISECOND, _SECOND, _MINUTE, _HOUR, _DAY = 1, 1000, 60_000, 3_600_000, 86_400_000

_DURATION_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), _MILLISECOND),
    **dict.fromkeys(("s", "sec", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), _MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), _HOUR),
    **dict.fromkeys(("d", "day", "days"), _DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * _DAY),
}
_SIZE_BYTES = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{p}b": 1000**n for n, p in enumerate("kmgt", 1)},
    **{f"{p}ib": 1024**n for n, p in enumerate("kmgt", 1)},
}
_PAIR = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
_LONGEST = 64  # characters; no honest duration or size needs more


def parse_duration(text: str, where: str = "duration") -> float:
    """Seconds in ``text``; zero is allowed, a sign is not."""
    expected = "a duration such as '500ms', '30s', '1h 30m' or '7d'"
    return sum(number * unit for number, unit in _pairs(text, where, _DURATION_MS, expected)) / 1000


def parse_size(text: str, where: str = "size") -> int:
    """Bytes in ``text``, a whole number."""
    expected = "a size such as '512 B', '64 MB' or '1 GiB'"
    pairs = _pairs(text, where, _SIZE_BYTES, expected)
    size = pairs[0][0] * pairs[0][1]
    if len(pairs) > 1 or not size.is_integer():
        raise BadArgument(where, expected, text)
    return int(size)


def format_duration(seconds: float) -> str:
    """The text in the largest unit that holds ``seconds`` whole, exact to a microsecond."""
    milliseconds = round(seconds * 1000, 3)
    for name, unit in (("d", _DAY), ("h", _HOUR), ("m", _MINUTE), ("s", _SECOND)):
        if milliseconds and milliseconds % unit == 0:
            return f"{int(milliseconds // unit)}{name}"
    return f"{milliseconds:.3f}".rstrip("0").rstrip(".") + "ms" if milliseconds else "0s"


def format_size(size_bytes: int) -> str:
    """The shortest text in one unit that parses to exactly ``size_bytes``."""
    units = [("TB", 1000**4), ("TiB", 1024**4), ("GB", 1000**3), ("GiB", 1024**3), ("MB", 1000**2)]
    units += [("MiB", 1024**2), ("kB", 1000), ("KiB", 1024)]
    whole = ((size_bytes // unit, name) for name, unit in units if size_bytes and size_bytes % unit == 0)
    count, name = min(whole, default=(size_bytes, "B"))
    return f"{count} {name}"


def counted(number: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _pairs(text: str, where: str, units: dict[str, int], expected: str) -> list[tuple[float, int]]:
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise BadArgument(where, expected, text)
    found, end = [], 0
    while match := _PAIR.match(text, end):
        number, unit = float(match[1]), units.get(match[2].lower())
        if unit is None or not math.isfinite(number):
            raise BadArgument(where, expected, text)
        found.append((number, unit))
        end = match.end()
    if not found or end != len(text):
        raise BadArgument(where, expected, text)
    return found
