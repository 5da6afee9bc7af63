"""What commands print: data on standard output, words about it on standard error.

Text that came from a cluster is shown with its control characters made visible, so that a record
cannot move the cursor or hide a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 100_000  # columns, where no terminal limits them


def console() -> Console:
    """Standard output; as wide as the data where it is not a terminal."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE, highlight=False)


def tell(message: str) -> None:
    """One line on standard error for the person at the terminal."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text("tocsin: ", style="bold red") + visible(message))


def note(message: str) -> None:
    """A remark on standard error."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(visible(message))


def print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    shown = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        shown.add_column(visible(column))
    for row in rows:
        shown.add_row(*(cell(value) for value in row))
    console().print(shown)


def cell(value: Any) -> Text:
    """A value as a table shows it."""
    if value is None:
        return Text("NULL", style="dim")
    if isinstance(value, bool):
        return Text(str(value).lower())
    if isinstance(value, int | float):
        return Text(str(value), justify="right")
    if isinstance(value, str):
        return visible(value)
    return visible(msgspec.json.encode(value).decode())


def visible(text: str) -> Text:
    """The text, with characters that would act on the terminal written out."""
    return Text("".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text))
