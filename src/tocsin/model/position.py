"""Positions: opaque strings that order a channel's results.

A position names an execution of the channel and a row in it. Written as fixed-width hexadecimal, so
that comparing the strings compares the positions. ``START`` is before every result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tocsin.errors import BadArgument

_FORM = re.compile(r"([0-9a-f]{12})-([0-9a-f]{8})")
_LAST_ROW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, order=True)
class Position:
    execution: int
    row: int

    def __str__(self) -> str:
        return f"{self.execution:012x}-{self.row:08x}"

    @staticmethod
    def parse(text: str) -> Position:
        found = _FORM.fullmatch(text)
        if not found:
            raise BadArgument("position", "a position that this cluster gave out", text)
        return Position(int(found[1], 16), int(found[2], 16))

    @staticmethod
    def end_of(execution: int) -> Position:
        """After every row of ``execution``."""
        return Position(execution, _LAST_ROW)


START = Position(0, 0)
