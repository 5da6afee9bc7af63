"""Recordings of scenarios: JSON lines, compressed where the name ends in ``.gz``.

The first line says what the file is and from which settings it came; every other line is one event
``[t, kind, payload]``. The last line is ``["end", count]``, so that a cut file is noticed. The same
events give the same bytes, whatever the file is called.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from tocsin.errors import Corrupt, Unavailable

FORMAT, VERSION = "tocsin-recording", 1
MAX_LINE = 150_000_000  # characters: where a million people are takes half of it


class Event(NamedTuple):
    """Something that a scenario does ``t`` seconds after it began."""

    t: float
    kind: str
    payload: Any


def record(path: str | Path, events: Iterable[Event], about: dict[str, Any]) -> int:
    """Write a recording; the number of events. Unavailable where it cannot be written."""
    count = 0
    with _writer(Path(path)) as file:
        file.write(_line({"format": FORMAT, "version": VERSION, "about": about}))
        for event in events:
            file.write(_line(list(event)))
            count += 1
        file.write(_line(["end", count]))
    return count


def replay(path: str | Path) -> Iterator[Event]:
    """The events of a recording, in order; Corrupt if it is none, or not whole."""
    with _reader(Path(path)) as file:
        _header(path, _next_line(path, file))
        count = 0
        while True:
            line = _next_line(path, file)
            if isinstance(line, list) and len(line) == 2 and line[0] == "end":
                if line[1] != count:
                    raise Corrupt(f"recording {path}: expected {line[1]!r} events, found {count}")
                return
            yield _event(path, line)
            count += 1


def about(path: str | Path) -> dict[str, Any]:
    """The settings that a recording was made from."""
    with _reader(Path(path)) as file:
        return _header(path, _next_line(path, file))


def _header(path: str | Path, line: Any) -> dict[str, Any]:
    if not isinstance(line, dict) or line.get("format") != FORMAT:
        raise Corrupt(f"recording {path}: expected a first line with format {FORMAT!r}")
    if line.get("version") != VERSION:
        raise Corrupt(f"recording {path}: expected version {VERSION}, got {line.get('version')!r}")
    settings = line.get("about", {})
    if not isinstance(settings, dict):
        raise Corrupt(f"recording {path}: expected settings by name in its first line, got {settings!r:.80}")
    return settings


def _event(path: str | Path, line: Any) -> Event:
    if isinstance(line, list) and len(line) == 3 and _is_time(line[0]) and isinstance(line[1], str):
        return Event(*line)
    raise Corrupt(f"recording {path}: expected [t, kind, payload], got {line!r:.80}")


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _next_line(path: str | Path, file: IO[str]) -> Any:
    try:
        text = file.readline(MAX_LINE)
        if text.endswith("\n"):
            return json.loads(text)
    except (ValueError, EOFError, OSError, RecursionError, zlib.error) as problem:
        raise Corrupt(f"recording {path}: {problem}") from problem
    if len(text) == MAX_LINE:
        raise Corrupt(f"recording {path}: expected lines of at most {MAX_LINE:,} characters")
    raise Corrupt(f"recording {path}: it stops before its end line")


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"


@contextmanager
def _writer(path: Path) -> Iterator[IO[str]]:
    try:
        with ExitStack() as opened:
            file: IO[bytes] = opened.enter_context(path.open("wb"))
            if path.suffix == ".gz":  # neither name nor time in it
                packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
                file = cast(IO[bytes], opened.enter_context(packed))
            yield opened.enter_context(TextIOWrapper(file, encoding="utf-8", newline="\n"))
    except OSError as problem:
        raise Unavailable(f"recording {path} cannot be written: {problem.strerror}") from None


def _reader(path: Path) -> IO[str]:
    try:
        return path.open(encoding="utf-8") if path.suffix != ".gz" else gzip.open(path, "rt", encoding="utf-8")
    except OSError as problem:
        raise Unavailable(f"recording {path} cannot be read: {problem.strerror}") from None
