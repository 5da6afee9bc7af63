"""Line plots as SVG text: a few numbers in, a picture out, no library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH, HEIGHT = 920.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 24.0, 28.0, 26.0
TICKS = 5
NAME_WIDTH, NAME_HEIGHT = 130.0, 18.0  # in the legend
IN_ROW = int((WIDTH - LEFT) // NAME_WIDTH)
Point = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Line:
    """Broken where there is no value; dotted where another line has its colour, and hollow in the legend."""

    name: str
    y: Sequence[float | None]
    colour: str
    is_dotted: bool = False


def plot(title: str, x: Sequence[float], lines: Sequence[Line]) -> str:
    """All lines over seconds ``x``, from zero to a round number above the highest value."""
    top = round_up(max((value for line in lines for value in line.y if value is not None), default=1.0))
    left, right = x[0], max(x[-1], x[0] + 1e-9)

    def at(value: float | None, second: float) -> Point:
        if value is None:
            return None
        across = LEFT + (WIDTH - LEFT - RIGHT) * (second - left) / (right - left)
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top

    drawn = "".join(_path(line, [at(value, s) for value, s in zip(line.y, x, strict=True)]) for line in lines)
    above = NAME_HEIGHT * (_rows(lines) - 1)
    return (
        f"<section><h2>{escape(title)}</h2>"
        f'<svg viewBox="0 {-above:g} {WIDTH:g} {HEIGHT + above:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(_grid(top, left, right))}{drawn}{''.join(_legend(lines))}</svg></section>\n"
    )


def round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50 … that is not below."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * (1 - 1e-12))


def short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _path(line: Line, points: Sequence[Point]) -> str:
    steps = " ".join(
        f"{'M' if before is None else 'L'}{here[0]:.1f} {here[1]:.1f}"
        for before, here in pairwise([None, *points])
        if here is not None
    )
    dots = ' stroke-dasharray="2 3"' if line.is_dotted else ""
    return f'<path d="{steps}" fill="none" stroke="{line.colour}" stroke-width="2"{dots}/>'


def _grid(top: float, left: float, right: float) -> Iterable[str]:
    for number in range(TICKS + 1):
        share = number / TICKS
        y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e6e2"/>'
        yield _text(LEFT - 8, y + 4, short(top * share), "end")
        yield _text(
            LEFT + (WIDTH - LEFT - RIGHT) * share, HEIGHT - 6, f"{left + (right - left) * share:.0f} s", "middle"
        )


def _rows(lines: Sequence[Line]) -> int:
    return max(1, -(-len(lines) // IN_ROW))


def _legend(lines: Sequence[Line]) -> Iterable[str]:
    """In rows, the last just above the lines."""
    for number, line in enumerate(lines):
        row, column = divmod(number, IN_ROW)
        x, y = LEFT + NAME_WIDTH * column, 6 - NAME_HEIGHT * (_rows(lines) - 1 - row)
        look = f'fill="none" stroke="{line.colour}" stroke-width="2"' if line.is_dotted else f'fill="{line.colour}"'
        yield f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" {look}/>'
        yield _text(x + 16, y + 10, line.name, "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" fill="#55625e">{escape(text)}</text>'
