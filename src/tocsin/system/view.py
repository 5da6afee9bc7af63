"""One view of what all parts say: each line with its part in front, in a colour of its own, or as JSON."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.text import Text

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


class TextView:
    """For people: ``broker_1     | ...``. Control characters of what is shown do not reach the terminal."""

    def __init__(self, console: Console, parts: Sequence[str]) -> None:
        self._console, self._width = console, max(map(len, parts))
        self._colours = {part: COLOURS[number % len(COLOURS)] for number, part in enumerate(parts)}
        self._lock = threading.Lock()

    def line(self, part: str, text: str) -> None:
        self._print(part, Text(_visible(text)))

    def event(self, part: str, what: str, *, is_bad: bool = False) -> None:
        self._print(part, Text(what, style="bold red" if is_bad else "bold"))

    def _print(self, part: str, text: Text) -> None:
        prefix = Text(f"{part:<{self._width}} | ", style=self._colours[part])
        with self._lock:
            self._console.print(prefix + text, soft_wrap=True, highlight=False)


class JsonView:
    """For programs: one object a line. What a part said as an object keeps its members, beside ``process``."""

    def __init__(self, output: TextIO) -> None:
        self._output, self._lock = output, threading.Lock()

    def line(self, part: str, text: str) -> None:
        self._print({"process": part, **_said(text)})

    def event(self, part: str, what: str, *, is_bad: bool = False) -> None:
        level = "error" if is_bad else "info"
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._print({"process": part, "time": now, "level": level, "logger": "tocsin.up", "message": what})

    def tell(self, entry: dict[str, Any]) -> None:
        self._print(entry)

    def _print(self, entry: dict[str, Any]) -> None:
        with self._lock:
            self._output.write(msgspec.json.encode(entry).decode() + "\n")
            self._output.flush()


def _said(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = None
    return found if isinstance(found, dict) else {"message": text}


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
