"""Durations and sizes as people write them.

A duration is one or more numbers with units (``10s``, ``500ms``, ``5 minutes``, ``1h30m``) or the ISO 8601
form without years and months (``PT10S``, ``P7D``): those two have no fixed length. A size is one number with
a unit: KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024. Arithmetic is decimal, so that
reading what was formatted gives the same number back.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from tocsin.errors import BadArgument

_SPELLINGS = {
    "1": "s sec secs second seconds",
    "0.001": "ms milli millis millisecond milliseconds",
    "60": "m min mins minute minutes",
    "3600": "h hr hrs hour hours",
    "86400": "d day days",
    "604800": "w week weeks",
}
_SECONDS = {word: Decimal(seconds) for seconds, words in _SPELLINGS.items() for word in words.split()}
_SIZES = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
SIZE_UNITS = frozenset(word.upper() for word in _SIZES)

_NUMBER = r"(\d{1,18}(?:\.\d{1,18})?)"
_PART = re.compile(rf"{_NUMBER}\s*([a-z]+)\s*", re.ASCII)
_ISO = re.compile(
    rf"p(?=.)(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:t(?=.)(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?)?", re.ASCII
)
_SIZE = re.compile(rf"{_NUMBER}\s*([a-z]*)", re.ASCII)


def parse_duration(text: str, where: str = "duration") -> float:
    """Seconds, or BadArgument naming ``where``."""
    lowered = text.strip().lower()
    total = _iso_seconds(lowered) if lowered.startswith("p") else _plain_seconds(lowered)
    if total is None:
        raise BadArgument(where, "a duration such as '10s', '500ms', '5 minutes', '7 days' or 'PT10S'", text)
    return float(total)


def _plain_seconds(text: str) -> Decimal | None:
    total, at = Decimal(0), 0
    while found := _PART.match(text, at):
        if found[2] not in _SECONDS:
            return None
        total, at = total + Decimal(found[1]) * _SECONDS[found[2]], found.end()
    return total if text and at == len(text) else None


def _iso_seconds(text: str) -> Decimal | None:
    found = _ISO.fullmatch(text)
    if not found:
        return None
    weights = (_SECONDS[unit] for unit in "wdhms")
    return sum((Decimal(n) * w for n, w in zip(found.groups(), weights, strict=True) if n), Decimal(0))


def format_duration(seconds: float) -> str:
    """The shortest exact form: ``7 days`` is ``'7d'``, half a second ``'500ms'``."""
    if not math.isfinite(seconds) or seconds < 0:
        raise BadArgument("duration", "a finite number of seconds, not below 0", seconds)
    exact = Decimal(repr(float(seconds)))
    for unit in ("d", "h", "m", "s", "ms"):
        count = exact / _SECONDS[unit]
        if exact and count == int(count):
            return f"{int(count)}{unit}"
    return f"{exact.normalize():f}s"


def parse_size(text: str, where: str = "size") -> int:
    """Bytes, or BadArgument naming ``where``; a bare number is bytes."""
    found = _SIZE.fullmatch(text.strip().lower())
    factor = _SIZES.get(found[2] or "b") if found else None
    total = Decimal(found[1]) * factor if found and factor else None
    if total is None or total != int(total):
        raise BadArgument(where, "a whole number of bytes such as '512 MB', '1.5 GB' or '64 KiB'", text)
    return int(total)


def format_size(size_bytes: int) -> str:
    """The largest unit that gives a whole number: ``'512 MB'``, ``'64 KiB'``, ``'1001 B'``."""
    if size_bytes < 0:
        raise BadArgument("size", "a number of bytes, not below 0", size_bytes)
    exact = [(factor, unit) for unit, factor in _SIZES.items() if size_bytes and size_bytes % factor == 0]
    factor, unit = max(exact, key=lambda pair: pair[0], default=(1, "b"))
    shown = unit.upper().replace("IB", "iB") if factor > 1 else "B"
    return f"{size_bytes // factor} {shown}"
