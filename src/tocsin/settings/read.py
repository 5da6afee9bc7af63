"""Reading settings: file, then environment, then flags; the later wins. All problems are told at once.

An unknown section, key or ``TOCSIN_`` variable is a problem, and the nearest known one is named: a
misspelt setting that silently keeps its default is the costliest kind. Variables in ``RESERVED`` are
read elsewhere.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tocsin.errors import BadArgument, ConfigError, nearest
from tocsin.settings.declare import Setting, settings_of

RESERVED = ("TOCSIN_CONFIG", "TOCSIN_JARS", "TOCSIN_TOKEN", "TOCSIN_URL")
RESERVED_PREFIX = "TOCSIN_TEST_"


@dataclass(frozen=True, slots=True)
class Written:
    """A value as somebody wrote it, and where."""

    source: str
    value: Any


def gather(
    root: type, path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any]
) -> tuple[dict[str, Written], list[str]]:
    """What was written for each setting path, the last word winning, and the problems met on the way."""
    settings = {s.path: s for s in settings_of(root)}
    problems: list[str] = []
    written: dict[str, Written] = {}
    for source in (_from_file(path), _from_environment(settings, environ), _from_flags(overrides)):
        for name, found in source:
            if name in settings:
                written[name] = found
            else:
                problems.append(_unknown(name, found.source, settings))
    return written, problems


def values(root: type, written: Mapping[str, Written], problems: list[str]) -> dict[str, dict[str, Any]]:
    """Section by section, the values that were written and are right; the others join ``problems``."""
    sections: dict[str, dict[str, Any]] = {}
    for setting in settings_of(root):
        section = sections.setdefault(setting.section, {})
        if found := written.get(setting.path):
            try:
                section[setting.name] = setting.read(found.value)
            except BadArgument as error:
                problems.append(f"{found.source}: {error}")
    return sections


def _from_file(path: Path | None) -> Iterator[tuple[str, Written]]:
    if path is None:
        return
    for section, content in _parse(path).items():
        if isinstance(content, dict):
            for name, value in content.items():
                yield f"{section}.{name}", Written(str(path), value)
        else:
            yield section, Written(str(path), content)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from None


def _from_environment(settings: Mapping[str, Setting], environ: Mapping[str, str]) -> Iterator[tuple[str, Written]]:
    variables = {s.variable: s.path for s in settings.values()}
    for name, value in environ.items():
        if name.startswith("TOCSIN_") and name not in RESERVED and not name.startswith(RESERVED_PREFIX):
            yield variables.get(name, name), Written("environment", value)


def _from_flags(overrides: Mapping[str, Any]) -> Iterator[tuple[str, Written]]:
    for name, value in overrides.items():
        if value is not None:
            yield name, Written("command line", value)


def _unknown(name: str, source: str, settings: Mapping[str, Setting]) -> str:
    if name.startswith("TOCSIN_"):
        return f"{source}: unknown variable {name!r}{nearest(name, (s.variable for s in settings.values()))}"
    sections = sorted({s.section for s in settings.values()})
    section, dot, _ = name.partition(".")
    if section not in sections and not dot:
        return f"{source}: unknown section {name!r}{nearest(name, sections)}"
    return f"{source}: unknown key {name!r}{nearest(name, settings)}"
