"""Declaring a setting: its kind, default, bounds and sentence, once, at the field.

A kind reads a value as written in a file, in the environment (always a text) or on the command line,
and writes it back as TOML. A section is a frozen dataclass whose fields are all made by the functions
here; the root is a frozen dataclass of sections.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, cast

from tocsin.errors import BadArgument
from tocsin.units import format_duration, format_size, parse_duration, parse_size

Seconds = float
Bytes = int


@dataclass(frozen=True, slots=True)
class Kind:
    """``read`` gives the value or raises ValueError; ``write`` gives it back as TOML."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Setting:
    section: str
    name: str
    kind: Kind
    default: Any
    expected: str
    sentence: str
    accepts: Callable[[Any], bool]

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"TOCSIN_{self.section}_{self.name}".upper()

    def read(self, written: object) -> Any:
        """The value, or BadArgument saying what was expected."""
        try:
            value = self.kind.read(written)
            if self.accepts(value):
                return value
        except (ValueError, OverflowError, BadArgument):
            pass
        raise BadArgument(self.path, self.expected, written)


def section(kind: type, sentence: str) -> Any:
    """A section of the root, with the sentence that heads it in the reference."""
    return field(default_factory=kind, metadata={"sentence": sentence})


def sections_of(root: type) -> Iterator[tuple[str, type]]:
    for item in fields(root):
        yield item.name, cast(type, item.default_factory)


def settings_of(root: type) -> Iterator[Setting]:
    """Every setting of a root, section by section, in order of declaration."""
    for name, kind in sections_of(root):
        for item in fields(kind):
            yield Setting(name, item.name, **item.metadata)


def text(default: str, sentence: str, *, pattern: str = r"(?s).*", expected: str = "a text") -> Any:
    return _declare(_TEXT, default, sentence, expected, lambda v: re.fullmatch(pattern, v) is not None)


def choice(default: str, options: tuple[str, ...], sentence: str) -> Any:
    return _declare(_TEXT, default, sentence, f"one of {', '.join(options)}", lambda v: v in options)


def flag(default: bool, sentence: str) -> Any:
    return _declare(_FLAG, default, sentence, "true or false", lambda v: True)


def integer(default: int, sentence: str, *, low: int, high: int) -> Any:
    return _declare(_INTEGER, default, sentence, f"an integer from {low} to {high}", lambda v: low <= v <= high)


def number(default: float, sentence: str, *, above: float = 0.0, high: float = 1e9) -> Any:
    expected = f"a number above {above:g}, at most {high:g}"
    return _declare(_NUMBER, default, sentence, expected, lambda v: above < v <= high)


def duration(default: str, sentence: str, *, low: str = "1ms", high: str = "366d") -> Any:
    least, most = parse_duration(low), parse_duration(high)
    expected = f"a duration from '{low}' to '{high}'"
    return _declare(_DURATION, parse_duration(default), sentence, expected, lambda v: least <= v <= most)


def size(default: str, sentence: str, *, low: str = "1 B", high: str = "1 TB") -> Any:
    least, most = parse_size(low), parse_size(high)
    expected = f"a size from '{low}' to '{high}'"
    return _declare(_SIZE, parse_size(default), sentence, expected, lambda v: least <= v <= most)


def table(sentence: str) -> Any:
    """Texts by name; in the environment a JSON object."""
    meta = _metadata(_TABLE, {}, sentence, "a table of texts", lambda v: True)
    return field(default_factory=dict, metadata=meta)


def _declare(kind: Kind, default: Any, sentence: str, expected: str, accepts: Callable[[Any], bool]) -> Any:
    return field(default=default, metadata=_metadata(kind, default, sentence, expected, accepts))


def _metadata(kind: Kind, default: Any, sentence: str, expected: str, accepts: Callable[[Any], bool]) -> dict[str, Any]:
    return {"kind": kind, "default": default, "expected": expected, "sentence": sentence, "accepts": accepts}


def _read_text(written: Any) -> str:
    if isinstance(written, str):
        return written
    raise ValueError


def _read_flag(written: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(written, bool):
        return written
    if isinstance(written, str) and written.lower() in words:
        return words[written.lower()]
    raise ValueError


def _read_integer(written: Any) -> int:
    if isinstance(written, str):
        return int(written)
    if isinstance(written, int) and not isinstance(written, bool):
        return written
    raise ValueError


def _read_number(written: Any) -> float:
    if isinstance(written, str | int | float) and not isinstance(written, bool):
        return float(written)
    raise ValueError


def _read_table(written: Any) -> dict[str, str]:
    found = json.loads(written) if isinstance(written, str) else written
    if not isinstance(found, dict):
        raise ValueError
    return {name: _word(value) for name, value in _flat(found)}


def _flat(found: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """TOML reads ``a.b = 1`` as a table in a table; here the dots belong to the name."""
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError


def _write_text(value: str) -> str:
    """JSON's texts are TOML's, but for characters beyond the first plane and DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_table(value: dict[str, str]) -> str:
    inner = ", ".join(f"{_write_text(k)} = {_write_text(v)}" for k, v in sorted(value.items()))
    return f"{{ {inner} }}" if inner else "{}"


_TEXT = Kind("text", _read_text, _write_text)
_FLAG = Kind("true or false", _read_flag, lambda v: str(v).lower())
_INTEGER = Kind("integer", _read_integer, str)
_NUMBER = Kind("number", _read_number, repr)
_DURATION = Kind("duration", parse_duration, lambda v: json.dumps(format_duration(v)))
_SIZE = Kind("size", parse_size, lambda v: json.dumps(format_size(v)))
_TABLE = Kind("table", _read_table, _write_table)
