"""The story of one run, line by line in a file, and the counter by which its moments are known."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec


class Journal:
    """One JSON object a line: seconds since the beginning, the moment, what happened, and its details."""

    def __init__(self, path: Path, echo: Callable[[str], None] | None = None) -> None:
        self._file, self._echo = path.open("w", buffering=1), echo
        self._began, self._moments = time.monotonic(), 0
        self.path = path

    def moment(self) -> int:
        """A number above all before."""
        self._moments += 1
        return self._moments

    def note(self, what: str, **details: Any) -> int:
        """Write down that something happened; the moment."""
        moment = self.moment()
        at_s = round(time.monotonic() - self._began, 3)
        self._file.write(msgspec.json.encode({"s": at_s, "moment": moment, "what": what, **details}).decode() + "\n")
        return moment

    def tell(self, what: str, **details: Any) -> int:
        """As ``note``, for what people want to follow."""
        moment = self.note(what, **details)
        if self._echo:
            shown = " ".join(f"{name}={value}" for name, value in details.items())
            self._echo(f"{time.monotonic() - self._began:7.2f} s  {what:<18} {shown}")
        return moment

    def close(self) -> None:
        self._file.close()
