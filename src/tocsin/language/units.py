"""Durations and sizes in statements: what ``tocsin.units`` reads, and durations in ISO 8601 as well.

``PT10S``, ``P7D``, ``P1DT2H30M`` are read; years and months are not, since they have no fixed length.
"""

from __future__ import annotations

import re

from tocsin import units
from tocsin.units import format_duration, format_size, parse_size

__all__ = ["format_duration", "format_size", "parse_duration", "parse_size"]

_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,6})?)"
_ISO = re.compile(
    rf"P(?=.)(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.IGNORECASE
)


def parse_duration(text: str, where: str = "duration") -> float:
    """Seconds, or BadArgument naming ``where``."""
    found = _ISO.fullmatch(text.strip())
    if not found:
        return units.parse_duration(text, where)
    plain = " ".join(f"{number}{unit}" for number, unit in zip(found.groups(), "wdhms", strict=True) if number)
    return units.parse_duration(plain, where)
