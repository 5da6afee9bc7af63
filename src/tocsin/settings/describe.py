"""Settings as text, derived from their declarations: TOML with its sources, and the reference page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import groupby
from typing import Any

from tocsin.settings.declare import Setting, settings_of

_PREAMBLE = """\
# Configuration

One TOML file, then the environment, then the command line; the later wins. The file is the one named
with `--config`, or by `TOCSIN_CONFIG`, or `tocsin.toml` in the working directory. `tocsin config show`
prints what holds and where each value came from, `tocsin config check` tells every problem at once.
Durations are written `"500ms"`, `"30s"`, `"1h 30m"`; sizes `"64 MB"`, `"1 GiB"`. On the command line
any setting can be given as `--set section.key=value`.

This page is made by `tocsin config docs`.
"""


def as_toml(config: Any, sources: Mapping[str, str] | None = None) -> str:
    """A file that gives exactly this configuration; with sources, each line says where it came from."""
    blocks = []
    for section, settings in groupby(settings_of(type(config)), key=lambda s: s.section):
        lines = [_line(setting, getattr(getattr(config, section), setting.name), sources) for setting in settings]
        blocks.append("\n".join([f"[{section}]", *lines]) + "\n")
    return "\n".join(blocks)


def as_mapping(config: Any) -> dict[str, dict[str, Any]]:
    """The values by section and key, as JSON can hold them."""
    found: dict[str, dict[str, Any]] = {}
    for setting in settings_of(type(config)):
        found.setdefault(setting.section, {})[setting.name] = getattr(getattr(config, setting.section), setting.name)
    return found


def as_markdown(root: type) -> str:
    """The reference page of every setting."""
    return "\n".join([_PREAMBLE, *_sections(root)])


def _line(setting: Setting, value: Any, sources: Mapping[str, str] | None) -> str:
    line = f"{setting.name} = {setting.kind.write(value)}"
    source = (sources or {}).get(setting.path)
    return f"{line}  # {source}" if source else line


def _sections(root: type) -> Iterator[str]:
    titles = {item.name: item.metadata["sentence"] for item in fields(root)}
    for section, settings in groupby(settings_of(root), key=lambda s: s.section):
        yield f"## `[{section}]`\n\n{titles[section]}\n"
        yield "| key | default | expected | meaning | variable |\n|---|---|---|---|---|"
        yield from map(_row, settings)
        yield ""


def _row(setting: Setting) -> str:
    default = setting.kind.write(setting.default)
    expected = setting.expected.replace("|", "\\|")
    return f"| `{setting.name}` | `{default}` | {expected} | {setting.sentence} | `{setting.variable}` |"
