"""A run as one HTML file that needs nothing else: what was said of it, tables, and plots as pictures in the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from tocsin.dashboard.plot import Line, plot

COLOURS = (
    "#332288", "#cc6677", "#117733", "#c8a415", "#3e9fd0", "#882255", "#2f9c8c", "#8a8a1f", "#aa4499", "#8c4b1f",
)  # fmt: skip
ACCENT, INK = "#0b6e69", "#17211f"
STYLE = """
body { font: 16px/1.55 system-ui, "DejaVu Sans", sans-serif; color: #17211f; background: #f5f6f4; margin: 0;
  font-variant-numeric: tabular-nums; }
main { max-width: 1000px; margin: 0 auto; padding: 2rem 1.25rem; display: grid; gap: 1rem; }
h1 { font-size: 1.9rem; margin: 0; } h2 { font-size: 1.15rem; margin: 0 0 .5rem; } p { margin: .3rem 0; }
section { background: #fff; border: 1px solid #d9ddd8; border-radius: 10px; padding: 1.1rem 1.25rem; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: #55625e; font-weight: 500; }
th, td { padding: .35rem 1.2rem .35rem 0; border-bottom: 1px solid #e3e6e2; } .n { text-align: right; }
th:last-child, td:last-child { padding-right: 0; }
svg { width: 100%; height: auto; } .soft { color: #55625e; } .bad { color: #b3261e; }
"""


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n<body>'
        f'<main><header><h1>{escape(title)}</h1><p class="soft">{escape(lead)}</p></header>\n'
        f"{''.join(sections)}</main></body>\n</html>\n"
    )


def said(title: str, lines: Sequence[str], *, is_bad: bool = False) -> str:
    paragraphs = "".join(f"<p{' class=bad' if is_bad else ''}>{escape(line)}</p>" for line in lines)
    return f"<section><h2>{escape(title)}</h2>{paragraphs}</section>\n"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A column of numbers, or of texts that begin with one, stands right, with its name."""
    lines = [[_text(value) for value in row] for row in rows]
    sides = [" class=n" if all(_is_number(line[at]) for line in lines) else "" for at in range(len(columns))]

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(f"<{tag}{side}>{escape(text)}</{tag}>" for side, text in zip(sides, texts, strict=True))

    body = "".join(f"<tr>{cells('td', line)}</tr>" for line in lines)
    return f"<section><h2>{escape(title)}</h2><table><tr>{cells('th', columns)}</tr>{body}</table></section>\n"


def plots(past: Mapping[str, Any]) -> list[str]:
    """What the dashboard has seen since it began, as far as it keeps that: loads, balance, people."""
    x = [at - past["began"] for at in past["at"]]
    if len(x) < 2:
        return []
    is_cut = past["n"] > len(x)
    brokers = list(past["brokers"].items())

    def by_broker(values: Any) -> list[Line]:
        return [
            Line(name, values(columns), COLOURS[number % len(COLOURS)], is_dotted=number >= len(COLOURS))
            for number, (name, columns) in enumerate(brokers)
        ]

    loads = by_broker(lambda columns: _sums(columns["bytes_in"], columns["bytes_out"]))
    text = f"The dashboard keeps {len(x):,} samples: the plots begin {x[0]:,.0f} s after it did."
    return [
        *([said("Only the end is in the plots", [text])] if is_cut else []),
        plot("Load by broker, bytes a second", x, loads),
        plot(
            "Highest and mean load, bytes a second",
            x,
            [Line("highest", past["maximum"], ACCENT), Line("mean", past["mean"], INK)],
        ),
        plot("Balance: cov of the loads", x, [Line("cov", past["cov"], ACCENT)]),
        plot("People online by broker", x, by_broker(lambda columns: columns["online"])),
    ]


def _sums(*columns: Sequence[float | None]) -> list[float | None]:
    """Unknown where one of them is."""
    return [None if None in values else sum(filter(None, values)) for values in zip(*columns, strict=True)]


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text == "–"
